#include "egress/url.h"

#include <algorithm>

#include "spec/egress_rule.h"

namespace belljar::egress {

std::optional<Url> parse_url(std::string_view text) {
  constexpr std::string_view kHttp = "http://";
  constexpr std::string_view kHttps = "https://";
  Url url;
  url.is_tls = text.starts_with(kHttps);
  if (!url.is_tls && !text.starts_with(kHttp)) return std::nullopt;
  text.remove_prefix(url.is_tls ? kHttps.size() : kHttp.size());
  const std::size_t end = std::min(text.find_first_of("/?#"), text.size());
  auto authority = parse_authority(text.substr(0, end));
  if (!authority) return std::nullopt;
  url.host = std::move(authority->host);
  url.port = authority->port.value_or(url.is_tls ? kHttpsPort : kHttpPort);
  url.target = text.substr(end);
  if (url.target.empty()) url.target = "/";
  const bool is_plain = std::ranges::all_of(url.target, [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
  if (url.target.front() != '/' || !is_plain) return std::nullopt;
  return url;
}

std::string_view path_of_target(std::string_view target) {
  return target.substr(0, target.find('?'));
}

}  // namespace belljar::egress
