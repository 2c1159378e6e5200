// Fuzzes DNS both ways: questions of a sandbox are answered without harm, and only answers to what was asked are taken.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/dns_server.h"
#include "egress/refused_packets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar;
  using namespace belljar::egress;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const Allowlist list({*parse_egress_rule("example.org", "x"), *parse_egress_rule("*.wild.example", "x")});
  SyntheticNames names;
  Audit audit;
  const std::string answer = answer_dns(bytes, list, names, audit, Ipv6::on);
  if (const auto question = parse_dns_question(bytes); question && !answer.empty()) {
    const auto own = parse_dns_answer(answer, question->id, question->name, question->type);
    if (own && !own->addresses.empty() && !list.names(Host{question->name, std::nullopt})) std::abort();
  }
  (void)parse_dns_answer(bytes, size > 1 ? static_cast<std::uint16_t>(data[0] << 8 | data[1]) : 0, "example.org",
                         kDnsTypeA);
  (void)parse_packet(bytes);
  return 0;
}
