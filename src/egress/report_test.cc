#include "egress/report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "egress/audit.h"

namespace belljar::egress {
namespace {

TEST(Config, ComesBackAsItWas) {
  EgressRule rule = *parse_egress_rule("*.example.org:8443", "x");
  rule.methods = {"GET"};
  rule.paths = {"/v1/*"};
  rule.allow_private = true;
  const EgressConfig config{
      .rules = {*parse_egress_rule("[2001:db8::7]", "x"), rule},
      .secrets = {*parse_secret_rule("K=fd:0@api.test:X-Key: a{}", "x")},
      .limits = {.connections = 3, .connections_per_second = 4, .bytes = 5, .idle_ms = 6, .time_ms = 8},
      .run_as = 7};
  const auto back = config_from_json(config_to_json(config));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rules, config.rules);
  EXPECT_EQ(back->secrets, config.secrets);
  EXPECT_EQ(back->limits.connections, 3U);
  EXPECT_EQ(back->limits.idle_ms, 6U);
  EXPECT_EQ(back->limits.time_ms, 8U);
  EXPECT_EQ(back->run_as, 7U);
  for (const char* text : {"", "[]", "{}", "{\"rules\":[1]}", "{\"rules\":[]}", "{\"rules\":[],\"secrets\":[1]}",
                           "{\"rules\":[{\"host\":\"a b\",\"ports\":[1]}]}", "{\"rules\":[{\"host\":\"a.test\"}]}",
                           "{\"rules\":[{\"host\":\"a.test\",\"ports\":[70000]}]}"}) {
    EXPECT_FALSE(config_from_json(text)) << text;
  }
}

TEST(Ready, ComesBackAsItWas) {
  const auto back = ready_from_json(ready_to_json({.authority_pem = "pem", .secret_bytes = {8, 4096}}), 2);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->authority_pem, "pem");
  EXPECT_EQ(back->secret_bytes, (std::vector<std::size_t>{8, 4096}));
  const auto refused = ready_from_json(refusal_to_json("the secret K: no"), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the secret K: no");
  for (const char* text :
       {"", "{}", "{\"authority\":\"pem\",\"secret_bytes\":[1]}", "{\"authority\":\"\",\"secret_bytes\":[1,2]}",
        "{\"authority\":\"pem\",\"secret_bytes\":[1,5000]}"}) {
    EXPECT_FALSE(ready_from_json(text, 2)) << text;
  }
}

TEST(Audit, AddsUpAndIsBounded) {
  Audit audit;
  for (int i = 0; i < 3; ++i)
    audit.refuse("evil.test:443", {.reason = "default deny", .hint = "--allow evil.test:443"});
  for (int i = 0; i < 2; ++i) audit.add_use("example.org:443", "rule 1 (example.org)", 1, 5, 10);
  audit.add_use("example.org:443", "rule 2 (example.org)", 1, 0, 0);
  audit.add_bytes(10, 20);
  EXPECT_EQ(audit.bytes_total(), 30U);
  for (std::size_t i = 0; i < 2 * kReportRowsMax; ++i) {
    audit.refuse(fmt::format("n{}", i), {.reason = "default deny"});
    audit.add_use(fmt::format("n{}", i), "rule 1", 1, 0, 0);
  }
  const auto report = report_from_json(report_to_json(audit.report()));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->denials[0].count, 3U);
  EXPECT_EQ(report->denials[0].kind, "network");
  EXPECT_EQ(report->uses[0].count, 2U);
  EXPECT_EQ(report->uses[0].received_bytes, 20U);
  EXPECT_EQ(report->uses[1].rule, "rule 2 (example.org)");
  EXPECT_EQ(report->uses.back().count, kReportRowsMax + 2);
  EXPECT_EQ(report->denials.size(), kReportRowsMax + 1);
  EXPECT_EQ(report->denials.back().target, "(others)");
  EXPECT_EQ(report->denials.back().count, kReportRowsMax + 1);
}

TEST(Report, IsTakenAsHostile) {
  for (const char* text : {"", "{", "[]", "1"}) EXPECT_FALSE(report_from_json(text)) << text;
  const auto report = report_from_json(
      "{\"sent_bytes\":-1,\"denials\":[1,{\"target\":\"a\\u001b[2J\\n\",\"count\":\"x\"}],\"uses\":3}");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->sent_bytes, 0U);
  ASSERT_EQ(report->denials.size(), 1U);
  EXPECT_EQ(report->denials[0].target, "a\\x1b[2J\\n");
}

}  // namespace
}  // namespace belljar::egress
