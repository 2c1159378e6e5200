#include "spec/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace belljar {
namespace {

constexpr std::size_t kTextBytesMax = INET6_ADDRSTRLEN;

struct Range {
  IpFamily family;
  std::array<std::uint8_t, 16> first;
  unsigned bits;
  IpKind kind;
};

constexpr IpFamily kV4 = IpFamily::v4;
constexpr IpFamily kV6 = IpFamily::v6;

// The first row that holds an address decides.
constexpr Range kRanges[] = {
    // Metadata services lie within wider ranges that a rule may allow.
    {kV4, {169, 254, 169, 254}, 32, IpKind::metadata},
    {kV4, {169, 254, 170, 2}, 32, IpKind::metadata},
    {kV4, {169, 254, 170, 23}, 32, IpKind::metadata},
    {kV4, {100, 100, 100, 200}, 32, IpKind::metadata},
    {kV4, {168, 63, 129, 16}, 32, IpKind::metadata},
    {kV4, {192, 0, 0, 192}, 32, IpKind::metadata},
    {kV6, {0xfd, 0x00, 0x0e, 0xc2}, 32, IpKind::metadata},
    {kV6, {0xfd, 0x20, 0x00, 0xce}, 32, IpKind::metadata},

    {kV4, {0}, 8, IpKind::reserved},
    {kV4, {10}, 8, IpKind::private_network},
    {kV4, {100, 64}, 10, IpKind::private_network},
    {kV4, {127}, 8, IpKind::loopback},
    {kV4, {169, 254}, 16, IpKind::link_local},
    {kV4, {172, 16}, 12, IpKind::private_network},
    {kV4, {192, 0, 0}, 24, IpKind::reserved},
    {kV4, {192, 88, 99}, 24, IpKind::embedded},
    {kV4, {192, 168}, 16, IpKind::private_network},
    {kV4, {198, 18}, 15, IpKind::reserved},
    {kV4, {224}, 4, IpKind::multicast},
    {kV4, {255, 255, 255, 255}, 32, IpKind::multicast},
    {kV4, {240}, 4, IpKind::reserved},

    {kV6, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, IpKind::loopback},
    {kV6, {}, 128, IpKind::reserved},
    {kV6, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, IpKind::embedded},
    {kV6, {}, 96, IpKind::embedded},
    {kV6, {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, IpKind::embedded},
    {kV6, {0x00, 0x64, 0xff, 0x9b}, 32, IpKind::embedded},
    {kV6, {0x01, 0x00}, 64, IpKind::reserved},
    {kV6, {0x20, 0x01, 0x00, 0x00}, 32, IpKind::embedded},
    {kV6, {0x20, 0x01, 0x00, 0x02}, 48, IpKind::reserved},
    {kV6, {0x20, 0x02}, 16, IpKind::embedded},
    {kV6, {0xfc}, 7, IpKind::private_network},
    {kV6, {0xfe, 0x80}, 10, IpKind::link_local},
    {kV6, {0xfe, 0xc0}, 10, IpKind::private_network},
    {kV6, {0xff}, 8, IpKind::multicast},
};

bool holds(const Range& range, const IpAddress& address) {
  if (range.family != address.family) return false;
  for (unsigned bit = 0; bit < range.bits; bit += 8) {
    const unsigned left = std::min(8U, range.bits - bit);
    const auto mask = static_cast<std::uint8_t>(0xff00U >> left);
    if (((range.first[bit / 8] ^ address.bytes[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

}  // namespace

std::optional<IpAddress> parse_ip(std::string_view text) {
  char copy[kTextBytesMax];
  if (text.size() >= sizeof copy || text.find('\0') != std::string_view::npos) return std::nullopt;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  IpAddress address;
  address.family = text.find(':') == std::string_view::npos ? kV4 : kV6;
  if (::inet_pton(address.family == kV4 ? AF_INET : AF_INET6, copy, address.bytes.data()) != 1) return std::nullopt;
  // Another way to write the same address is not taken for it.
  if (format_ip(address) != text) return std::nullopt;
  return address;
}

std::string format_ip(const IpAddress& address) {
  char text[kTextBytesMax] = {};
  ::inet_ntop(address.family == kV4 ? AF_INET : AF_INET6, address.bytes.data(), text, sizeof text);
  return text;
}

IpKind kind_of(const IpAddress& address) {
  const auto* const found = std::ranges::find_if(kRanges, [&](const Range& range) { return holds(range, address); });
  return found == std::end(kRanges) ? IpKind::global : found->kind;
}

std::string_view kind_text(IpKind kind) {
  switch (kind) {
    case IpKind::global:
      return "a global address";
    case IpKind::private_network:
      return "an address of a private network";
    case IpKind::loopback:
      return "a loopback address";
    case IpKind::link_local:
      return "a link-local address";
    case IpKind::metadata:
      return "the address of a cloud's metadata service";
    case IpKind::multicast:
      return "a multicast or broadcast address";
    case IpKind::embedded:
      return "an IPv6 address that stands for an IPv4 one";
    case IpKind::reserved:
      break;
  }
  return "a reserved address";
}

}  // namespace belljar
