// `belljar runs` and `belljar show`: from arguments to checked requests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace belljar {

struct RunsRequest {
  std::string profile;                    // empty: all
  std::string status;                     // empty: all
  std::optional<std::uint64_t> since_ms;  // how far back
  std::optional<std::uint64_t> count;
  bool json = false;
};

struct ShowRequest {
  std::int64_t run = 0;
  bool json = false;
};

// `arguments` are those after the command's name. Each returns the exit status.
int runs_command(std::span<char* const> arguments);
int show_command(std::span<char* const> arguments);

}  // namespace belljar
