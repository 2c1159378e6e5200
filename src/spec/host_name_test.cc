#include "spec/host_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/egress_rule.h"

namespace belljar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Host, TakesNamesInOneForm) {
  EXPECT_EQ(parse_host("Example.ORG")->text, "example.org");
  EXPECT_EQ(parse_host("xn--bcher-kva.example")->text, "xn--bcher-kva.example");
  EXPECT_EQ(parse_host("_dmarc.example.org")->text, "_dmarc.example.org");
  EXPECT_EQ(parse_host("a1.2b")->text, "a1.2b");
  EXPECT_TRUE(parse_host(std::string(63, 'a') + ".example"));
}

TEST(Host, RefusesWhatOthersMightReadAnotherWay) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {""sv,
                                      "."sv,
                                      "example.org."sv,
                                      ".example.org"sv,
                                      "a..b"sv,
                                      "a b"sv,
                                      "example.org\0.evil.test"sv,
                                      "example.org\r\n"sv,
                                      "example.org%00"sv,
                                      "example%2eorg"sv,
                                      "user@example.org"sv,
                                      "example.org:80"sv,
                                      "-a.example"sv,
                                      "a-.example"sv,
                                      "b\xc3\xbc"
                                      "cher.example"sv,
                                      "a/b"sv,
                                      "[example.org]"sv,
                                      "example.org#x"sv,
                                      "a*b.example"sv,
                                      "*.example.org"sv}) {
    EXPECT_FALSE(parse_host(text)) << text;
  }
  EXPECT_FALSE(parse_host(std::string(64, 'a') + ".example"));
  EXPECT_FALSE(parse_host(std::string(300, 'a')));
  std::string many;
  while (many.size() < 260) many += "a.";
  EXPECT_FALSE(parse_host(many + "example"));
}

TEST(Host, TakesAddressesInTheirUsualFormOnly) {
  for (const char* text : {"203.0.113.7", "2001:db8::7", "::1", "0.0.0.0"}) {
    const auto host = parse_host(text);
    ASSERT_TRUE(host) << text;
    EXPECT_TRUE(host->is_literal());
    EXPECT_EQ(format_ip(*host->address), text);
  }
  for (const char* text : {"2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.01", "1.2.3.4.5",
                           "256.0.0.1", "2001:DB8::7", "2001:db8:0:0:0:0:0:7", "::ffff:127.0.0.1 ", "fe80::1%eth0",
                           "::127.0.0.1x", "a.0x10", "example.1", "0x", "[::1]"}) {
    EXPECT_FALSE(parse_host(text)) << text;
  }
}

TEST(Authority, TakesHostAndPort) {
  EXPECT_EQ(parse_authority("example.org:443")->port, 443U);
  EXPECT_FALSE(parse_authority("example.org")->port);
  EXPECT_EQ(parse_authority("[2001:db8::7]:8443")->host.text, "2001:db8::7");
  EXPECT_EQ(parse_authority("[::1]")->host.text, "::1");
  for (const char* text : {"example.org:", "example.org:0", "example.org:65536", "example.org:-1", "example.org:+80",
                           "example.org:080", "example.org: 80", "a@example.org:80", "::1", "[::1", "[::1]x",
                           "[1.2.3.4]", "[example.org]:80", "example.org:80:80", ":80"}) {
    EXPECT_FALSE(parse_authority(text)) << text;
  }
}

TEST(Ascii, FollowsIdna2008) {
  EXPECT_EQ(to_ascii_name("b\xc3\xbc"
                          "cher.example"),
            "xn--bcher-kva.example");
  EXPECT_EQ(to_ascii_name("example.org"), "example.org");
  EXPECT_EQ(to_ascii_name("stra\xc3\x9f"
                          "e.example"),
            "xn--strae-oqa.example");
  EXPECT_FALSE(to_ascii_name("\xff.example"));
  EXPECT_FALSE(to_ascii_name("\xe2\x80\xae.example"));
}

TEST(PublicSuffix, KnowsRulesWildcardsAndExceptions) {
  for (const char* name :
       {"com", "org", "co.uk", "github.io", "ck", "foo.ck", "test", "internal", "xn--p1ai", "compute.amazonaws.com"}) {
    EXPECT_TRUE(is_public_suffix(name)) << name;
  }
  for (const char* name : {"example.com", "example.co.uk", "me.github.io", "www.ck", "corp.internal"}) {
    EXPECT_FALSE(is_public_suffix(name)) << name;
  }
}

TEST(EgressRule, ReadsHostsAndPorts) {
  EXPECT_EQ(parse_egress_rule("example.org", "--allow")->ports, (std::vector<std::uint16_t>{80, 443}));
  EXPECT_THAT(parse_egress_rule("db.test:5432", "--allow")->ports, ElementsAre(5432));
  EXPECT_THAT(parse_egress_rule("db.test:443,80,443", "--allow")->ports, ElementsAre(80, 443));
  EXPECT_TRUE(parse_egress_rule("*.example.org", "--allow")->is_wildcard);
  EXPECT_EQ(parse_egress_rule("b\xc3\xbc"
                              "cher.example",
                              "--allow")
                ->host.text,
            "xn--bcher-kva.example");
  EXPECT_THAT(parse_egress_rule("[2001:db8::7]:8443", "--allow")->ports, ElementsAre(8443));
  for (const char* text : {"example.org", "*.example.org:8443", "203.0.113.7:8443,9443", "[2001:db8::7]:1"}) {
    EXPECT_EQ(format_egress_rule(*parse_egress_rule(text, "--allow")), text);
  }
}

TEST(EgressRule, RefusesWithAReason) {
  const auto refusal = [](std::string_view text) {
    const auto rule = parse_egress_rule(text, "--allow");
    return rule ? std::string("taken") : rule.error().message;
  };
  EXPECT_THAT(refusal(""), HasSubstr("the host is empty"));
  EXPECT_THAT(refusal("*"), HasSubstr("everything can't be allowed"));
  EXPECT_THAT(refusal("https://example.org/"), HasSubstr("is a URL"));
  EXPECT_THAT(refusal("10.0.0.0/8"), HasSubstr("ranges of addresses"));
  EXPECT_THAT(refusal("*.com"), HasSubstr("too wide"));
  EXPECT_THAT(refusal("*.github.io"), HasSubstr("too wide"));
  EXPECT_THAT(refusal("*.co.uk"), HasSubstr("too wide"));
  EXPECT_THAT(refusal("a.*.example.org"), HasSubstr("at the beginning only"));
  EXPECT_THAT(refusal("*example.org"), HasSubstr("at the beginning only"));
  EXPECT_THAT(refusal("example.org:0"), HasSubstr("is not a port"));
  EXPECT_THAT(refusal("example.org:080"), HasSubstr("is not a port"));
  EXPECT_THAT(refusal("example.org:65536"), HasSubstr("is not a port"));
  EXPECT_THAT(refusal("example.org:"), HasSubstr("is not a port"));
  EXPECT_THAT(refusal("127.1"), HasSubstr("neither a host name nor an address"));
  EXPECT_THAT(refusal("2001:db8::7"), HasSubstr("in brackets"));
  EXPECT_THAT(refusal("[203.0.113.7]"), HasSubstr("neither a host name nor an address"));
  EXPECT_THAT(refusal("127.0.0.1:80"), HasSubstr("the sandbox's own loopback"));
  EXPECT_THAT(refusal("localhost"), HasSubstr("the sandbox itself"));
  EXPECT_THAT(refusal("0.0.0.0"), HasSubstr("can't be allowed"));
  EXPECT_THAT(refusal("[::ffff:1.2.3.4]"), HasSubstr("can't be allowed"));
  EXPECT_THAT(refusal("example.org."), HasSubstr("neither a host name nor an address"));
  EXPECT_THAT(refusal("user@example.org"), HasSubstr("neither a host name nor an address"));
}

TEST(EgressRule, ChecksMethodsAndPaths) {
  const auto refusal = [](std::vector<std::string> methods, std::vector<std::string> paths) {
    EgressRule rule{.host = *parse_host("example.org"), .methods = std::move(methods), .paths = std::move(paths)};
    const auto checked = check_egress_rule(rule, "allow");
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(refusal({"GET", "POST"}, {"/v1/*", "/health"}), "");
  EXPECT_THAT(refusal({"get"}, {}), HasSubstr("is not a method"));
  EXPECT_THAT(refusal({"CONNECT"}, {}), HasSubstr("leave it out"));
  EXPECT_THAT(refusal({}, {"v1"}), HasSubstr("is not a path"));
  EXPECT_THAT(refusal({}, {"/a*b"}), HasSubstr("at the end"));
  EXPECT_THAT(refusal({}, {"/a/../b"}), HasSubstr("dotted parts"));
  EXPECT_THAT(refusal({}, {"/a?b"}), HasSubstr("no query"));
}

}  // namespace
}  // namespace belljar
