#include "egress/socks.h"

#include <gtest/gtest.h>

#include "egress/refused_packets.h"

namespace belljar::egress {
namespace {

using namespace std::string_literals;
using Kind = SocksRequest::Kind;

std::string to_name(const std::string& name, const std::string& port = "\x01\xbb"s) {
  return "\x05\x01\0\x03"s + static_cast<char>(name.size()) + name + port;
}

TEST(Socks5, GreetsAndConnects) {
  EXPECT_EQ(read_socks("\x05\x02\x02\0x"s, false).kind, Kind::greeting);
  EXPECT_EQ(read_socks("\x05\x02\x02\0x"s, false).size, 4U);
  EXPECT_EQ(read_socks("\x05\x01\x02"s, false).kind, Kind::broken);
  const SocksRequest request = read_socks(to_name("example.org"), true);
  ASSERT_EQ(request.kind, Kind::connect);
  EXPECT_EQ(request.host.text, "example.org");
  EXPECT_EQ(request.port, 443U);
  EXPECT_EQ(read_socks("\x05\x01\0\x01\xcb\0\x71\x07\0\x50"s, true).host.text, "203.0.113.7");
  EXPECT_EQ(read_socks("\x05\x01\0\x04"s + std::string(15, '\0') + "\x01\0\x50"s, true).host.text, "::1");
  const std::string whole = to_name("example.org");
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_EQ(read_socks(whole.substr(0, cut), true).kind, Kind::more) << cut;
  }
}

TEST(Socks5, RefusesOddNames) {
  for (const std::string& name : {"example.org\0.evil.test"s, "example.org."s, "127.1"s, "exa mple.org"s, ""s,
                                  "user@example.org"s, "2130706433"s, "example.org\r\n"s}) {
    const SocksRequest request = read_socks(to_name(name), true);
    EXPECT_EQ(request.kind, Kind::broken) << name;
    EXPECT_EQ(request.reply, SocksReply::not_allowed);
  }
  EXPECT_EQ(read_socks(to_name("example.org", "\0\0"s), true).kind, Kind::broken);
  EXPECT_EQ(read_socks("\x05\x02\0\x01\x7f\0\0\x01\0\x50"s, true).reply, SocksReply::bad_command);
  EXPECT_EQ(read_socks("\x05\x03\0\x01\x7f\0\0\x01\0\x50"s, true).reply, SocksReply::bad_command);
  EXPECT_EQ(make_socks_reply(5, SocksReply::not_allowed).substr(0, 2), "\x05\x02"s);
}

TEST(Socks4, ConnectsByAddressAndByName) {
  EXPECT_EQ(read_socks("\x04\x01\0\x50\xcb\0\x71\x07me\0"s, false).host.text, "203.0.113.7");
  const SocksRequest request = read_socks("\x04\x01\x01\xbb\0\0\0\x01\0"s + "example.org\0"s, false);
  ASSERT_EQ(request.kind, Kind::connect);
  EXPECT_EQ(request.host.text, "example.org");
  EXPECT_EQ(request.size, 9U + 12U);
  EXPECT_EQ(read_socks("\x04\x02\0\x50\xcb\0\x71\x07\0"s, false).kind, Kind::broken);
  EXPECT_EQ(read_socks("\x04\x01\0\x50\xcb\0\x71\x07"s + std::string(300, 'u'), false).kind, Kind::broken);
  const auto with_user = [](std::size_t size) {
    return "\x04\x01\0\x50\xcb\0\x71\x07"s + std::string(size, 'u') + "\0"s;
  };
  EXPECT_EQ(read_socks(with_user(255), false).kind, Kind::connect);
  EXPECT_EQ(read_socks(with_user(256), false).kind, Kind::broken);
  EXPECT_EQ(make_socks_reply(4, SocksReply::granted)[1], 90);
}

TEST(RefusedPacket, IsReadFromItsHead) {
  const std::string v4 = "\x45\0\0\x3c\0\0\0\0\x40\x11\0\0\xc6\x13\xff\xfe\x08\x08\x08\x08\x12\x34\0\x35"s;
  const auto udp = parse_packet(v4);
  ASSERT_TRUE(udp);
  EXPECT_EQ(format_ip(udp->address), "8.8.8.8");
  EXPECT_EQ(udp->protocol, 17U);
  EXPECT_EQ(udp->port, 53U);
  EXPECT_FALSE(parse_packet(v4.substr(0, 19)));
  EXPECT_EQ(parse_packet(v4.substr(0, 20))->port, 0U);
  EXPECT_FALSE(parse_packet(""));
  EXPECT_FALSE(parse_packet("\x75"s));
  const std::string v6 =
      "\x60\0\0\0\0\x14\x06\x40"s + std::string(16, '\0') + std::string(15, '\0') + "\x01\x12\x34\x01\xbb"s;
  EXPECT_EQ(format_ip(parse_packet(v6)->address), "::1");
  EXPECT_EQ(parse_packet(v6)->port, 443U);
}

}  // namespace
}  // namespace belljar::egress
