// What the egress process needs to end TLS and to put secrets in: opened by the supervisor as the caller, read by the
// process alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "spec/secret_rule.h"

namespace belljar::egress {

struct InspectionSources {
  bool is_needed = false;
  Fd trusted;               // certificates that servers are checked by (PEM); none where the host has none
  std::vector<Fd> secrets;  // in the order of the rules
};

// `lookup` is getenv(3). Errors: bad_value, where a secret's source or a file that the caller named can't be opened;
// host_unsupported, where there are no certificates and a secret goes out by TLS.
using EnvironmentLookup = const char* (*)(const char* name);
Result<InspectionSources> open_inspection_sources(const std::vector<SecretRule>& secrets, EnvironmentLookup lookup);

// That no secret's file lies in one of the `folders` (or is one of these files), which the program will see. Errors:
// bad_value.
Result<void> check_secrets_are_unseen(const std::vector<SecretRule>& secrets, const std::vector<std::string>& folders);

// Files in which systems keep the certificates that they trust, as absolute paths.
std::vector<std::string_view> trust_files();

// The two ends of the way to the process, a stream socket.
Result<void> hand_over(int socket, const InspectionSources& sources);
Result<InspectionSources> take_over(int socket, std::size_t secrets);

}  // namespace belljar::egress
