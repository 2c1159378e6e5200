#include "egress/dns_message.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "egress/dns_server.h"
#include "egress/resolver.h"

namespace belljar::egress {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string header(std::uint16_t id, std::uint16_t flags, int questions, int answers) {
  const auto two = [](int value) { return std::string{static_cast<char>(value >> 8), static_cast<char>(value)}; };
  return two(id) + two(flags) + two(questions) + two(answers) + two(0) + two(0);
}

std::string ask(std::string_view name, std::uint16_t type) {
  return make_dns_question(7, name, type);
}

IpAddress ip(std::string_view text) {
  return *parse_ip(text);
}

class Answering : public ::testing::Test {
 protected:
  std::string answer(std::string_view question) { return answer_dns(question, list_, names_, audit_, Ipv6::on); }
  std::optional<DnsAnswer> answered(std::string_view name, std::uint16_t type) {
    return parse_dns_answer(answer(ask(name, type)), 7, name, type);
  }
  Allowlist list_{{*parse_egress_rule("example.org", "x"), *parse_egress_rule("*.wild.example", "x")}};
  SyntheticNames names_;
  Audit audit_;
};

TEST_F(Answering, GivesListedNamesAnAddressOfTheirOwn) {
  const auto v4 = answered("example.org", kDnsTypeA);
  ASSERT_TRUE(v4);
  EXPECT_THAT(v4->addresses, ElementsAre(ip("198.18.0.1")));
  EXPECT_THAT(answered("example.org", kDnsTypeAaaa)->addresses, ElementsAre(ip("2001:2::1")));
  EXPECT_THAT(answered("a.wild.example", kDnsTypeA)->addresses, ElementsAre(ip("198.18.0.2")));
  EXPECT_EQ(names_.name_of(ip("198.18.0.2")), "a.wild.example");
  EXPECT_EQ(names_.name_of(ip("2001:2::1")), "example.org");
  EXPECT_FALSE(names_.name_of(ip("198.18.0.3")));
  EXPECT_FALSE(names_.name_of(ip("2001:2::1:0:1")));
}

TEST_F(Answering, KnowsNoOtherNames) {
  for (const char* name : {"evil.test", "wild.example", "notexample.org", "example.org.evil.test"}) {
    EXPECT_EQ(answered(name, kDnsTypeA)->code, DnsCode::no_such_name) << name;
  }
  ASSERT_EQ(audit_.report().denials.size(), 4U);
  EXPECT_EQ(audit_.report().denials[0].hint, "--allow evil.test");
}

TEST_F(Answering, HasNothingButAddresses) {
  for (const std::uint16_t type : {std::uint16_t{65}, std::uint16_t{64}, std::uint16_t{16}, std::uint16_t{15}}) {
    const auto nothing = answered("example.org", type);
    ASSERT_TRUE(nothing);
    EXPECT_EQ(nothing->code, DnsCode::no_error);
    EXPECT_THAT(nothing->addresses, IsEmpty());
  }
}

TEST_F(Answering, TakesNoNamesThatHostsCanNotHave) {
  const std::string dot_inside = header(7, 0x100, 1, 0) + "\x0b"s + "example.org" + "\0\0\x01\0\x01"s;
  EXPECT_EQ(answer(dot_inside).substr(2, 2), "\x85\x83"s);
  const std::string with_nul = header(7, 0x100, 1, 0) + "\x08"s + "exa\0mple"s + "\x03org\0\0\x01\0\x01"s;
  EXPECT_EQ(answer(with_nul).substr(2, 2), "\x85\x83"s);
  EXPECT_EQ(answer(ask("Example.ORG", kDnsTypeA)).substr(2, 2), "\x85\x80"s);
}

TEST_F(Answering, BoundsTheNamesBelowWildcards) {
  for (std::size_t i = 0; i < kSyntheticNamesMax; ++i) {
    EXPECT_TRUE(names_.address_of(fmt::format("n{}.wild.example", i), IpFamily::v4));
  }
  const std::string refused = answer(ask("more.wild.example", kDnsTypeA));
  EXPECT_EQ(refused[3] & 15, static_cast<int>(DnsCode::refused));
}

TEST(DnsQuestion, IgnoresWhatIsNone) {
  EXPECT_FALSE(parse_dns_question(""));
  EXPECT_FALSE(parse_dns_question(header(1, 0x8100, 1, 0) + "\0\0\x01\0\x01"s));
  EXPECT_FALSE(parse_dns_question(header(1, 0x100, 2, 0) + "\0\0\x01\0\x01"s));
  EXPECT_FALSE(parse_dns_question(header(1, 0x100, 1, 0) + "\xc0\x0c\0\x01\0\x01"s));
  EXPECT_FALSE(parse_dns_question(header(1, 0x100, 1, 0) + "\x3f"s + "a"));
}

std::string record(const std::string& owner, int type, const std::string& data) {
  return owner + std::string{0, static_cast<char>(type), 0, 1, 0, 0, 0, 9, 0, static_cast<char>(data.size())} + data;
}

TEST(DnsAnswer, FollowsAliasesWithinTheMessage) {
  const std::string question = ask("a.example", kDnsTypeA).substr(12);
  const std::string pointer = "\xc0\x0c"s;
  const std::string target = "\x01"s + "b\x07"s + "example\0"s;
  const std::string message = header(7, 0x8180, 1, 3) + question + record(pointer, 5, target) +
                              record(target, 1, "\x0a\0\0\x01"s) + record("\x01x\0"s, 1, "\x09\x09\x09\x09"s);
  const auto answer = parse_dns_answer(message, 7, "a.example", kDnsTypeA);
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->addresses, ElementsAre(ip("10.0.0.1")));
  EXPECT_FALSE(parse_dns_answer(message, 8, "a.example", kDnsTypeA));
  EXPECT_FALSE(parse_dns_answer(message, 7, "c.example", kDnsTypeA));
  EXPECT_FALSE(parse_dns_answer(message, 7, "a.example", kDnsTypeAaaa));
}

TEST(ResolverFiles, ReadsServersAndHosts) {
  const ResolverFiles files =
      read_resolver_files("# x\nnameserver 9.9.9.9\nsearch a\nnameserver bad\nnameserver ::1\n",
                          "127.0.0.1 localhost\n10.0.0.1\tDB.test alias # x\n10.0.0.2 db.test\n");
  EXPECT_THAT(files.servers, ElementsAre(NameServer{ip("9.9.9.9")}, NameServer{ip("::1")}));
  EXPECT_THAT(files.hosts.at("db.test"), ElementsAre(ip("10.0.0.1"), ip("10.0.0.2")));
  EXPECT_THAT(read_resolver_files("", "").servers, ElementsAre(NameServer{ip("127.0.0.1")}));
}

TEST(ResolverFiles, TakesAddressesInAnyForm) {
  const ResolverFiles files =
      read_resolver_files("nameserver 2001:DB8:0:0::1\nnameserver FE80::1%lo\nnameserver\tfe80::2%7\n",
                          "2001:DB8::A a.test\n2001:db8:0::b\ta.test\n");
  EXPECT_THAT(files.servers,
              ElementsAre(NameServer{ip("2001:db8::1")}, NameServer{ip("fe80::1"), 1}, NameServer{ip("fe80::2"), 7}));
  EXPECT_THAT(files.hosts.at("a.test"), ElementsAre(ip("2001:db8::a"), ip("2001:db8::b")));
}

TEST(ResolverFiles, PassesOverOddLines) {
  const ResolverFiles files = read_resolver_files(
      "nameserver\nnameserver fe80::1%\nnameserver fe80::1%no-such-one\nnameserver 192.0.2.1%lo\nnameserver 1.2.3\n"
      "nameserver \0\n; x\noptions\nnameserver 192.0.2.2 # the one\r\n"s,
      "fe80::1%lo0 localhost a.test\n\n \t\n300.1.1.1 a.test\na.test\n192.0.2.1\n192.0.2.1 a..test * % \0 b.test\n192.0.2.3 a.test"s);
  EXPECT_THAT(files.servers, ElementsAre(NameServer{ip("192.0.2.2")}));
  EXPECT_THAT(files.hosts.at("a.test"), ElementsAre(ip("192.0.2.3")));
  EXPECT_THAT(files.hosts.at("b.test"), ElementsAre(ip("192.0.2.1")));
  EXPECT_EQ(files.hosts.size(), 2U);
}

}  // namespace
}  // namespace belljar::egress
