// SecretRule: a value that is put into requests outside the sandbox. The program has a placeholder of the same length.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/egress_rule.h"

namespace belljar {

inline constexpr std::size_t kSecretsMax = 16;
// Shorter ones stand in too many answers by chance, where each is masked.
inline constexpr std::size_t kSecretBytesMin = 8;
inline constexpr std::size_t kSecretBytesMax = 4096;

enum class SecretSource {
  file,
  fd,   // an open descriptor of the caller's
  env,  // a variable of the caller's
};

struct SecretRule {
  std::string name;  // of the variable that has the placeholder inside
  SecretSource source = SecretSource::file;
  std::string from;           // the path, number or name
  EgressRule requests;        // that it goes into: a name's, never a wildcard's or an address's
  bool plain_http = false;    // it goes over HTTP without TLS too
  std::string header;         // "Authorization"
  std::string header_format;  // "Bearer {}", with the value in place of {}

  bool operator==(const SecretRule&) const = default;
};

// Reads what --secret takes: NAME=SOURCE@[http://]HOST[:PORTS]:HEADER: FORMAT, where SOURCE is file:PATH, fd:NUMBER or
// env:NAME. A path may have @ and : in it. Errors: bad_value.
Result<SecretRule> parse_secret_rule(std::string_view text, std::string_view where);

// The parts of it, as a policy file has them.
Result<void> parse_secret_source(std::string_view text, std::string_view where, SecretRule* rule);
Result<void> parse_secret_header(std::string_view text, std::string_view where, SecretRule* rule);

Result<void> check_secret_rule(SecretRule& rule, std::string_view where);

// All secrets together, with the rules that must allow their hosts. Two secrets must not be for one header of one
// request, or from one descriptor.
Result<void> check_secret_rules(const std::vector<SecretRule>& secrets, const std::vector<EgressRule>& allow,
                                std::string_view where);

std::string_view secret_source_name(SecretSource source);

// What stands for a value inside: a word that may stand in any header, so long as the value.
std::string secret_placeholder(std::size_t bytes);

// Whether connections must be read for these rules: TLS then ends at the relay.
bool needs_inspection(const std::vector<SecretRule>& secrets, const std::vector<EgressRule>& allow);

}  // namespace belljar
