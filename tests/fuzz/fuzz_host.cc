// Fuzzes the one parser of host strings: what is taken has one form, and rules that are taken are written back alike.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/url.h"
#include "spec/egress_rule.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const Host& host) {
    if (parse_host(host.text) != host || host.text.size() > kHostBytesMax) std::abort();
  };
  if (const auto host = parse_host(text)) check(*host);
  if (const auto authority = parse_authority(text)) {
    check(authority->host);
    if (authority->port && parse_authority(format_authority(authority->host, *authority->port)) != authority)
      std::abort();
  }
  if (const auto url = egress::parse_url(text)) check(url->host);
  if (const auto rule = parse_egress_rule(text, "--allow")) {
    if (parse_egress_rule(format_egress_rule(*rule), "--allow") != *rule) std::abort();
  }
  (void)is_public_suffix(text);
  return 0;
}
