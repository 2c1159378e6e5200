// `belljar image load | ls | inspect | rm | gc`: from arguments to a checked request.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar {

enum class ImageVerb { load, ls, inspect, rm, gc };

struct ImageRequest {
  ImageVerb verb = ImageVerb::ls;
  bool json = false;
  std::string name;    // for load, inspect and rm: a sound name
  std::string source;  // for load: a path
  std::uint64_t bytes_max = 0;
  std::uint64_t entries_max = 0;
  std::uint64_t time_ms_max = 0;
};

// `arguments` are those after "image". Returns the exit status.
int image_command(std::span<char* const> arguments);

std::string image_help();

}  // namespace belljar
