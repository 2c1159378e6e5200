#include "egress/allowlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace belljar::egress {
namespace {

using ::testing::HasSubstr;

EgressRule rule(std::string_view text) {
  return *parse_egress_rule(text, "--allow");
}

Host host(std::string_view text) {
  return *parse_host(text);
}

Allowlist list_of(std::initializer_list<std::string_view> texts) {
  std::vector<EgressRule> rules;
  for (const std::string_view text : texts) rules.push_back(rule(text));
  return Allowlist(std::move(rules));
}

TEST(Allowlist, AllowsNothingWhenEmpty) {
  const Allowlist none({});
  const Decision decision = none.decide(host("example.org"), 443);
  EXPECT_FALSE(decision.is_allowed);
  EXPECT_EQ(decision.reason, "default deny");
  EXPECT_EQ(decision.hint, "--allow example.org:443");
  EXPECT_EQ(refuse_name(host("example.org")).hint, "--allow example.org");
  EXPECT_EQ(none.decide(host("2001:db8::7"), 80).hint, "--allow [2001:db8::7]:80");
  for (const std::string_view text : {"127.0.0.1", "::1", "224.0.0.1", "64:ff9b::7f00:1", "localhost"}) {
    EXPECT_TRUE(none.decide(host(text), 80).hint.starts_with("nothing: ")) << text;
  }
  EXPECT_FALSE(none.names(host("example.org")));
}

TEST(Allowlist, MatchesWholeLabels) {
  const Allowlist list = list_of({"example.org", "*.wild.example"});
  for (const char* name : {"example.org", "a.wild.example", "a.b.wild.example"}) {
    EXPECT_TRUE(list.decide(host(name), 443).is_allowed) << name;
  }
  for (const char* name : {"notexample.org", "www.example.org", "example.org.evil.test", "wild.example",
                           "notwild.example", "wild.example.evil.test", "xwild.example"}) {
    EXPECT_FALSE(list.decide(host(name), 443).is_allowed) << name;
    EXPECT_FALSE(list.names(host(name))) << name;
  }
}

TEST(Allowlist, HoldsPorts) {
  const Allowlist list = list_of({"example.org", "db.internal.test:5432"});
  EXPECT_TRUE(list.decide(host("example.org"), 80).is_allowed);
  EXPECT_TRUE(list.decide(host("db.internal.test"), 5432).is_allowed);
  const Decision decision = list.decide(host("example.org"), 22);
  EXPECT_FALSE(decision.is_allowed);
  EXPECT_EQ(decision.reason, "port 22 is not in rule 1 (example.org)");
  EXPECT_EQ(decision.hint, "--allow example.org:22");
  EXPECT_FALSE(list.decide(host("db.internal.test"), 443).is_allowed);
}

TEST(Allowlist, NamesAllRulesThatMightHaveAllowed) {
  EgressRule reading = rule("api.example.org");
  reading.methods = {"GET"};
  EgressRule writing = rule("api.example.org:443,8443");
  writing.methods = {"POST"};
  writing.paths = {"/v1/*"};
  const Allowlist list({rule("other.example.org"), reading, writing});
  const Host api = host("api.example.org");
  EXPECT_EQ(list.decide_request(api, 443, {"GET", "/x"}).rule, 1U);
  EXPECT_EQ(list.decide_request(api, 443, {"POST", "/v1/x"}).rule, 2U);
  EXPECT_EQ(list.decide(api, 8443).rule, 2U);
  EXPECT_EQ(list.decide_request(api, 443, {"POST", "/x"}).reason,
            "the method or the path is not in rule 2 (api.example.org) or rule 3 (api.example.org:443,8443)");
  EXPECT_EQ(list.decide_request(api, 8443, {"GET", "/x"}).reason,
            "the method or the path is not in rule 3 (api.example.org:443,8443)");
  EXPECT_EQ(list.decide(api, 22).reason,
            "port 22 is not in rule 2 (api.example.org) or rule 3 (api.example.org:443,8443)");
  const Allowlist many = list_of({"a.test:1", "a.test:2", "a.test:3", "a.test:4", "a.test:5", "a.test:6"});
  EXPECT_EQ(many.decide(host("a.test"), 80).reason,
            "port 80 is not in rule 1 (a.test:1), rule 2 (a.test:2), rule 3 (a.test:3), rule 4 (a.test:4) or 2 more");
}

TEST(Allowlist, TakesLiteralsForThemselvesOnly) {
  const Allowlist list = list_of({"203.0.113.7:8443", "[2001:db8::7]"});
  EXPECT_TRUE(list.decide(host("203.0.113.7"), 8443).is_allowed);
  EXPECT_TRUE(list.decide(host("2001:db8::7"), 443).is_allowed);
  EXPECT_FALSE(list.decide(host("203.0.113.8"), 8443).is_allowed);
  EXPECT_FALSE(list.decide(host("2001:db8::8"), 443).is_allowed);
}

TEST(Allowlist, DecidesRequestsByMethodAndPath) {
  EgressRule reading = rule("api.example.org");
  reading.methods = {"GET", "HEAD"};
  reading.paths = {"/v1/*", "/health"};
  const Allowlist list({reading});
  const Host api = host("api.example.org");
  EXPECT_TRUE(list.must_see_requests(api, 80));
  EXPECT_TRUE(list.decide_request(api, 80, {"GET", "/v1/items"}).is_allowed);
  EXPECT_TRUE(list.decide_request(api, 80, {"HEAD", "/health"}).is_allowed);
  for (const char* path : {"/v2/items", "/v1", "/healthy", "/", "/v1/../v2", "/v1/%2e%2e/v2", "/v1//x", "/v1/a%2Fb",
                           "/v1/..;/x", "/v1/.."}) {
    EXPECT_FALSE(list.decide_request(api, 80, {"GET", path}).is_allowed) << path;
  }
  EXPECT_FALSE(list.decide_request(api, 80, {"POST", "/v1/items"}).is_allowed);
  EXPECT_FALSE(list.decide_request(api, 80, {"get", "/v1/items"}).is_allowed);
  EXPECT_FALSE(list.decide_request(api, 8080, {"GET", "/v1/items"}).is_allowed);
}

TEST(Allowlist, NeedNotSeeRequestsWhereARuleAllowsAll) {
  EgressRule reading = rule("api.example.org");
  reading.methods = {"GET"};
  const Allowlist list({reading, rule("*.example.org")});
  EXPECT_FALSE(list.must_see_requests(host("api.example.org"), 443));
  EXPECT_EQ(list.decide(host("api.example.org"), 443).rule, 1U);
  const Decision decision = list.decide_request(host("api.example.org"), 443, {"POST", "/"});
  EXPECT_TRUE(decision.is_allowed);
  EXPECT_EQ(decision.rule, 1U);
}

TEST(Allowlist, LiftsNothingForRequestsOfOtherRules) {
  EgressRule some = rule("x.a.test");
  some.allow_private = true;
  some.paths = {"/v1/*"};
  EgressRule all = some;
  all.paths = {};
  const auto is_allowed = [](const std::vector<EgressRule>& rules) {
    return Allowlist(rules).decide_address(host("x.a.test"), 80, *parse_ip("10.0.0.1")).is_allowed;
  };
  EXPECT_TRUE(is_allowed({some}));
  EXPECT_FALSE(is_allowed({some, rule("x.a.test")}));
  EXPECT_FALSE(is_allowed({rule("*.a.test"), some}));
  EXPECT_TRUE(is_allowed({rule("x.a.test"), all}));
  EXPECT_TRUE(is_allowed({some, rule("b.test"), rule("x.a.test:81")}));
}

TEST(Allowlist, ChecksTheAddressThatIsDialled) {
  EgressRule inside = rule("db.internal.test:5432");
  inside.allow_private = true;
  const Allowlist list({rule("example.org"), inside, rule("10.0.0.5:80")});
  const auto decide = [&](const char* name, unsigned port, const char* address) {
    return list.decide_address(host(name), port, *parse_ip(address));
  };
  EXPECT_TRUE(decide("example.org", 443, "93.184.216.34").is_allowed);
  for (const char* address : {"127.0.0.1",
                              "10.0.0.1",
                              "172.31.0.1",
                              "192.168.1.1",
                              "100.64.0.1",
                              "169.254.1.1",
                              "169.254.169.254",
                              "0.0.0.0",
                              "224.0.0.1",
                              "255.255.255.255",
                              "240.0.0.1",
                              "198.18.0.1",
                              "::1",
                              "::",
                              "fe80::1",
                              "fc00::1",
                              "ff02::1",
                              "64:ff9b::a00:1",
                              "2002:a00:1::",
                              "fd00:ec2::254",
                              "::ffff:0:a00:1"}) {
    const Decision decision = decide("example.org", 443, address);
    EXPECT_FALSE(decision.is_allowed) << address;
    EXPECT_THAT(decision.reason, HasSubstr(address));
  }
  EXPECT_TRUE(decide("db.internal.test", 5432, "10.0.0.1").is_allowed);
  EXPECT_TRUE(decide("db.internal.test", 5432, "127.0.0.1").is_allowed);
  EXPECT_FALSE(decide("db.internal.test", 5432, "169.254.169.254").is_allowed);
  EXPECT_FALSE(decide("db.internal.test", 5432, "fd00:ec2::254").is_allowed);
  EXPECT_FALSE(decide("db.internal.test", 443, "10.0.0.1").is_allowed);
  EXPECT_TRUE(decide("10.0.0.5", 80, "10.0.0.5").is_allowed);
  EXPECT_FALSE(decide("10.0.0.5", 80, "10.0.0.6").is_allowed);
}

TEST(Allowlist, ReadsMappedAddressesAsBytes) {
  IpAddress mapped{.family = IpFamily::v6, .bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}};
  EXPECT_EQ(kind_of(mapped), IpKind::embedded);
  EXPECT_FALSE(list_of({"example.org"}).decide_address(host("example.org"), 443, mapped).is_allowed);
}

}  // namespace
}  // namespace belljar::egress
