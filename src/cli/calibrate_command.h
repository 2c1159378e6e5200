// `belljar calibrate`: from arguments to a checked request.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace belljar {

struct CalibrateRequest {
  std::string profile;
  unsigned percentile_hundredths = 9900;
  double factor = 3;
  std::uint64_t since_ms = 30ULL * 24 * 3600 * 1000;
  bool force = false;  // also from fewer runs than needed
  bool json = false;
  std::string policy_file;  // to be written; empty: none
  std::string html_file;    // to be written; empty: none
};

// `arguments` are those after "calibrate". Returns the exit status.
int calibrate_command(std::span<char* const> arguments);

}  // namespace belljar
