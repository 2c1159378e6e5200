#include "egress/refused_packets.h"

#include <fmt/format.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace belljar::egress {
namespace {

constexpr unsigned kMessagesPerTurn = 64;

std::string_view protocol_name(unsigned protocol) {
  switch (protocol) {
    case IPPROTO_UDP:
      return "udp";
    case IPPROTO_ICMP:
    case IPPROTO_ICMPV6:
      return "icmp";
    default:
      return "ip";
  }
}

// The payload of one NFULNL_MSG_PACKET; empty where there is none.
std::string_view payload_of(std::string_view message) {
  std::size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(nfgenmsg));
  while (at + NLA_HDRLEN <= message.size()) {
    nlattr attribute;
    std::memcpy(&attribute, message.data() + at, sizeof attribute);
    if (attribute.nla_len < NLA_HDRLEN || at + attribute.nla_len > message.size()) return {};
    if ((attribute.nla_type & NLA_TYPE_MASK) == NFULA_PAYLOAD) {
      return message.substr(at + NLA_HDRLEN, attribute.nla_len - static_cast<std::size_t>(NLA_HDRLEN));
    }
    at += NLA_ALIGN(attribute.nla_len);
  }
  return {};
}

}  // namespace

std::optional<RefusedPacket> parse_packet(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  const unsigned version = byte(0) >> 4;
  constexpr std::size_t kV4Bytes = 20;
  constexpr std::size_t kV6Bytes = 40;
  RefusedPacket packet;
  std::size_t transport = 0;
  if (version == 4 && bytes.size() >= kV4Bytes) {
    packet.protocol = byte(9);
    transport = (byte(0) & 15U) * std::size_t{4};
    std::copy_n(bytes.begin() + 16, 4, packet.address.bytes.begin());
  } else if (version == 6 && bytes.size() >= kV6Bytes) {
    packet.address.family = IpFamily::v6;
    packet.protocol = byte(6);
    transport = kV6Bytes;
    std::copy_n(bytes.begin() + 24, 16, packet.address.bytes.begin());
  } else {
    return std::nullopt;
  }
  const bool has_port = packet.protocol == IPPROTO_TCP || packet.protocol == IPPROTO_UDP;
  if (has_port && transport >= kV4Bytes && bytes.size() >= transport + 4)
    packet.port = byte(transport + 2) << 8 | byte(transport + 3);
  return packet;
}

bool RefusedPackets::start(Poller& poller, Fd netlink) {
  netlink_ = std::move(netlink);
  return poller.add(netlink_.get(), EPOLLIN, this, 0, &slot_);
}

void RefusedPackets::wake(std::uint32_t /*events*/, unsigned /*tag*/) {
  for (unsigned i = 0; i < kMessagesPerTurn; ++i) {
    alignas(nlmsghdr) std::array<char, 4096> bytes;
    const ssize_t count = ::recv(netlink_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < static_cast<ssize_t>(sizeof(nlmsghdr))) return;
    nlmsghdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    constexpr unsigned kPacket = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET;
    if (header.nlmsg_type != kPacket || header.nlmsg_len > static_cast<std::size_t>(count)) continue;
    if (const auto packet = parse_packet(payload_of({bytes.data(), header.nlmsg_len}))) record(*packet);
  }
}

void RefusedPackets::record(const RefusedPacket& packet) {
  Host host{format_ip(packet.address), packet.address};
  if (const auto name = names_.name_of(packet.address)) host = {*name, std::nullopt};
  if (packet.protocol == IPPROTO_TCP) {
    audit_.refuse(format_authority(host, packet.port), allowlist_.decide(host, packet.port));
    return;
  }
  const std::string_view name = protocol_name(packet.protocol);
  audit_.refuse(
      packet.port == 0 ? fmt::format("{} {}", name, host.text)
                       : fmt::format("{} {}", name, format_authority(host, packet.port)),
      {.reason = "only TCP leaves a sandbox", .hint = "nothing: names are resolved by the sandbox's own server"});
}

}  // namespace belljar::egress
