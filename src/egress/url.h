// URLs of http and https, strictly: what other parsers could take for another place is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "spec/host_name.h"

namespace belljar::egress {

struct Url {
  bool is_tls = false;
  Host host;
  unsigned port = 0;
  std::string_view target;  // path and query, a view into the text; "/" where the URL has none
};

// "http://HOST[:PORT][/PATH]", without user information; nothing for all else.
std::optional<Url> parse_url(std::string_view text);

// The target up to the query.
std::string_view path_of_target(std::string_view target);

}  // namespace belljar::egress
