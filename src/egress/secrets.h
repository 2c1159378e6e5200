// The values of --secret: only this process has them, and only requests that their rules name get them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/allowlist.h"
#include "egress/http_request.h"
#include "spec/secret_rule.h"

namespace belljar::egress {

// How a request goes out.
enum class Transport { plain, tls };

// Overwrites the text's memory and empties it.
void wipe(std::string* text);

// The value that a descriptor leads to, up to its end, without one line break there. Waits some seconds for it at most.
// Errors: bad_value, which does not say anything of what was read.
Result<std::string> read_secret_value(int fd, std::string_view name);

class Secrets {
 public:
  Secrets() = default;
  ~Secrets();
  Secrets(Secrets&&) = default;
  Secrets& operator=(Secrets&&) = delete;

  void add(SecretRule rule, std::string value);

  std::span<const std::string> values() const { return values_; }

  // Whether requests on such a connection may get one.
  bool are_for(const Host& host, unsigned port, Transport transport) const;

  // What a request gets: `name` in lower case, and the whole value of the header. The first rule that fits wins.
  struct Header {
    std::string name;
    std::string value;
  };
  using Headers = std::vector<Header>;
  Headers headers_of(const Host& host, unsigned port, Transport transport, const RequestLine& request) const;

  // The secret whose placeholder stands in its header although it does not go out without TLS; null: there is none.
  const SecretRule* only_by_tls(const Host& host, std::span<const HttpHeader> headers) const;

 private:
  std::vector<SecretRule> rules_;
  std::vector<std::string> values_;  // of each rule
};

}  // namespace belljar::egress
