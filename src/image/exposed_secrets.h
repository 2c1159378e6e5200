// What an operator may have left readable for everyone in a place that every sandbox sees.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace belljar {

enum class Coverage { whole, partial };

struct ExposedSecrets {
  std::vector<std::string> paths;       // sorted, at most kExposedSecretsMax
  Coverage coverage = Coverage::whole;  // partial: time or room ran out before the walk was over
};

constexpr std::size_t kExposedSecretsMax = 50;

// Files below `folder` (for doctor: /usr/local) that any user can read and whose name or head suggests a secret:
// private keys, .env, .netrc, credentials and the like. A hint for the operator, who can hide them with --hide; no wall
// depends on it. Test data of Python (folders named test or tests) is passed over. Stops after `time_max`.
ExposedSecrets find_exposed_secrets(const std::string& folder, std::chrono::milliseconds time_max);

}  // namespace belljar
