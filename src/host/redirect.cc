#include "host/redirect.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <tuple>

#include "host/netlink.h"

namespace belljar::host {
namespace {

constexpr unsigned kLoopbackIndex = 1;  // of every network namespace
constexpr std::uint8_t kOwnV4[] = {198, 19, 255, 254};
constexpr std::uint8_t kOwnV6[] = {0x20, 0x01, 0x00, 0x02, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr std::uint8_t kLoopbackV4[] = {127};
constexpr std::uint8_t kLoopbackV6[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr std::uint16_t kLogGroup = 1;
constexpr int kRawPriority = -300;     // before connection tracking
constexpr int kFilterPriority = -150;  // after connection tracking (-200), before addresses are translated
constexpr int kNatPriority = -100;
constexpr std::size_t kMemoryBytes = std::size_t{96} << 10;
constexpr std::uint16_t kGsoIpv4MaxSize = 63;  // IFLA_GSO_IPV4_MAX_SIZE of <linux/if_link.h>, which may be older
constexpr int kBacklog = 4096;                 // cut to net.core.somaxconn

enum class Family : bool { v4, v6 };

// --- Addresses and routes ---------------------------------------------------------------------------------------

// An address of the namespace beside 127.0.0.1 and ::1: some resolvers ask only for the families that they see such an
// address of (AI_ADDRCONFIG of getaddrinfo(3)).
template <std::size_t kSize>
void add_address(NetlinkMessages& messages, Family family, const std::uint8_t (&address)[kSize]) {
  ifaddrmsg header{};
  header.ifa_family = family == Family::v4 ? AF_INET : AF_INET6;
  header.ifa_prefixlen = kSize * 8;
  header.ifa_index = kLoopbackIndex;
  header.ifa_flags = IFA_F_NODAD;
  messages.begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &header, sizeof header);
  messages.attribute(IFA_LOCAL, address, kSize);
  messages.attribute(IFA_ADDRESS, address, kSize);
}

// Every address is this namespace's own, so that packets to all of them reach the rules below.
template <std::size_t kSize>
void add_route(NetlinkMessages& messages, Family family, const std::uint8_t (&source)[kSize]) {
  rtmsg header{};
  header.rtm_family = family == Family::v4 ? AF_INET : AF_INET6;
  header.rtm_table = RT_TABLE_LOCAL;
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_scope = family == Family::v4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  header.rtm_type = RTN_LOCAL;
  messages.begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &header, sizeof header);
  messages.attribute(RTA_OIF, &kLoopbackIndex, sizeof kLoopbackIndex);
  messages.attribute(RTA_PREFSRC, source, kSize);
}

template <std::size_t kSize>
int add_routes(int socket_fd, Family family, const std::uint8_t (&own)[kSize]) {
  std::byte memory[512];
  NetlinkMessages address(memory);
  add_address(address, family, own);
  if (const int result = address.send(socket_fd); result != 0) return result;
  NetlinkMessages route(memory);
  add_route(route, family, own);
  return route.send(socket_fd);
}

// Lets more bytes cross the loopback in one packet, which is what the speed of big transfers hangs on. Kernels
// before 6.3 have no such thing for IPv4, and those before 5.19 none at all: nothing else depends on it.
void widen_loopback(int socket_fd) {
  constexpr std::uint32_t kPacketBytes = 8 * 65535;  // GSO_MAX_SIZE of the kernel, more it refuses
  std::byte memory[128];
  NetlinkMessages messages(memory);
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = kLoopbackIndex;
  messages.begin(RTM_NEWLINK, NLM_F_ACK, &header, sizeof header);
  messages.attribute(IFLA_GSO_MAX_SIZE, &kPacketBytes, sizeof kPacketBytes);
  messages.attribute(kGsoIpv4MaxSize, &kPacketBytes, sizeof kPacketBytes);
  (void)messages.send(socket_fd);
}

// --- Rules ------------------------------------------------------------------------------------------------------

constexpr std::string_view kTable = "belljar";
constexpr std::string_view kOut = "out";
constexpr std::string_view kListed = "listed";
constexpr std::string_view kRefuse = "refuse";
constexpr std::string_view kNat = "nat";
constexpr std::string_view kRaw = "raw";

constexpr std::uint16_t nft_type(int message) {
  return static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message);
}

// Writes the rules of nftables as the kernel takes them (linux/netfilter/nf_tables.h). An open rule holds expressions.
class RuleWriter {
 public:
  explicit RuleWriter(NetlinkMessages& messages) : messages_(messages) {}

  void batch(int message) {
    const nfgenmsg header{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)};
    messages_.begin(static_cast<std::uint16_t>(message), 0, &header, sizeof header);
  }

  void table() {
    begin(NFT_MSG_NEWTABLE, NLM_F_CREATE);
    messages_.text(NFTA_TABLE_NAME, kTable);
  }

  void chain(std::string_view name) {
    begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    messages_.text(NFTA_CHAIN_TABLE, kTable);
    messages_.text(NFTA_CHAIN_NAME, name);
  }

  void base_chain(std::string_view name, std::string_view type, int priority) {
    chain(name);
    const std::size_t hook = messages_.open(NFTA_CHAIN_HOOK);
    messages_.be32(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    messages_.be32(NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(priority));
    messages_.close(hook);
    messages_.text(NFTA_CHAIN_TYPE, type);
  }

  void begin_rule(std::string_view chain_name, std::uint16_t more_flags = 0) {
    begin(NFT_MSG_NEWRULE, static_cast<std::uint16_t>(NLM_F_CREATE | NLM_F_APPEND | more_flags));
    messages_.text(NFTA_RULE_TABLE, kTable);
    messages_.text(NFTA_RULE_CHAIN, chain_name);
    rule_ = messages_.open(NFTA_RULE_EXPRESSIONS);
  }
  void end_rule() { messages_.close(rule_); }

  void if_family(Family family) { if_meta(NFT_META_NFPROTO, family == Family::v4 ? NFPROTO_IPV4 : NFPROTO_IPV6); }
  void if_tcp() { if_meta(NFT_META_L4PROTO, IPPROTO_TCP); }

  void if_destination(Family family, const std::uint8_t* prefix, std::size_t size) {
    if_family(family);
    if_payload(NFT_PAYLOAD_NETWORK_HEADER, family == Family::v4 ? 16 : 24, prefix, size);
  }

  void if_port(std::uint16_t port) {
    const std::uint16_t wire = htons(port);
    if_payload(NFT_PAYLOAD_TRANSPORT_HEADER, 2, &wire, sizeof wire);
  }

  void verdict(int code, std::string_view chain_name = {}) {
    const auto data = begin_expression("immediate");
    messages_.be32(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    const std::size_t value = messages_.open(NFTA_IMMEDIATE_DATA);
    const std::size_t nested = messages_.open(NFTA_DATA_VERDICT);
    messages_.be32(NFTA_VERDICT_CODE, static_cast<std::uint32_t>(code));
    if (!chain_name.empty()) messages_.text(NFTA_VERDICT_CHAIN, chain_name);
    messages_.close(nested);
    messages_.close(value);
    end_expression(data);
  }

  void redirect_to(std::uint16_t port) {
    const std::uint16_t wire = htons(port);
    const auto immediate = begin_expression("immediate");
    messages_.be32(NFTA_IMMEDIATE_DREG, NFT_REG_1);
    value_of(NFTA_IMMEDIATE_DATA, &wire, sizeof wire);
    end_expression(immediate);
    const auto redirect = begin_expression("redir");
    messages_.be32(NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    end_expression(redirect);
  }

  // No more than some a second, so that a flood of refusals costs its own sandbox only.
  void log() {
    constexpr std::uint64_t kPerSecond = 100;
    constexpr std::uint32_t kBurst = 400;
    constexpr std::uint32_t kHeadBytes = 128;
    limit_packets(kPerSecond, kBurst, 0);
    const auto log = begin_expression("log");
    messages_.be16(NFTA_LOG_GROUP, kLogGroup);
    messages_.be32(NFTA_LOG_SNAPLEN, kHeadBytes);
    end_expression(log);
  }

  void if_more_than(std::uint32_t per_second, std::uint32_t burst) {
    limit_packets(per_second, burst, NFT_LIMIT_F_INV);
  }

  void do_not_track() { end_expression(begin_expression("notrack")); }

  void reject(std::uint32_t type, std::uint8_t code) {
    const auto data = begin_expression("reject");
    messages_.be32(NFTA_REJECT_TYPE, type);
    messages_.attribute(NFTA_REJECT_ICMP_CODE, &code, sizeof code);
    end_expression(data);
  }

 private:
  struct Expression {
    std::size_t element;
    std::size_t data;
  };

  void begin(int message, std::uint16_t flags) {
    const nfgenmsg header{NFPROTO_INET, NFNETLINK_V0, 0};
    messages_.begin(nft_type(message), flags, &header, sizeof header);
  }

  Expression begin_expression(std::string_view name) {
    Expression expression{};
    expression.element = messages_.open(NFTA_LIST_ELEM);
    messages_.text(NFTA_EXPR_NAME, name);
    expression.data = messages_.open(NFTA_EXPR_DATA);
    return expression;
  }
  void end_expression(const Expression& expression) {
    messages_.close(expression.data);
    messages_.close(expression.element);
  }

  void limit_packets(std::uint64_t per_second, std::uint32_t burst, std::uint32_t flags) {
    const auto limit = begin_expression("limit");
    messages_.be64(NFTA_LIMIT_RATE, per_second);
    messages_.be64(NFTA_LIMIT_UNIT, 1);
    messages_.be32(NFTA_LIMIT_BURST, burst);
    messages_.be32(NFTA_LIMIT_TYPE, NFT_LIMIT_PKTS);
    messages_.be32(NFTA_LIMIT_FLAGS, flags);
    end_expression(limit);
  }

  void value_of(std::uint16_t type, const void* value, std::size_t size) {
    const std::size_t data = messages_.open(type);
    messages_.attribute(NFTA_DATA_VALUE, value, size);
    messages_.close(data);
  }

  void if_equal(const void* value, std::size_t size) {
    const auto compare = begin_expression("cmp");
    messages_.be32(NFTA_CMP_SREG, NFT_REG_1);
    messages_.be32(NFTA_CMP_OP, NFT_CMP_EQ);
    value_of(NFTA_CMP_DATA, value, size);
    end_expression(compare);
  }

  void if_meta(std::uint32_t key, std::uint8_t value) {
    const auto meta = begin_expression("meta");
    messages_.be32(NFTA_META_DREG, NFT_REG_1);
    messages_.be32(NFTA_META_KEY, key);
    end_expression(meta);
    if_equal(&value, sizeof value);
  }

  void if_payload(std::uint32_t base, std::uint32_t offset, const void* value, std::size_t size) {
    const auto payload = begin_expression("payload");
    messages_.be32(NFTA_PAYLOAD_DREG, NFT_REG_1);
    messages_.be32(NFTA_PAYLOAD_BASE, base);
    messages_.be32(NFTA_PAYLOAD_OFFSET, offset);
    messages_.be32(NFTA_PAYLOAD_LEN, static_cast<std::uint32_t>(size));
    end_expression(payload);
    if_equal(value, size);
  }

  NetlinkMessages& messages_;
  std::size_t rule_ = 0;
};

// What is the sandbox's own: its loopback, and answers to connections that were redirected.
void let_own_pass(RuleWriter& writer, std::string_view chain) {
  const auto pass = [&](Family family, std::span<const std::uint8_t> prefix) {
    writer.begin_rule(chain);
    writer.if_destination(family, prefix.data(), prefix.size());
    writer.verdict(NF_ACCEPT);
    writer.end_rule();
  };
  pass(Family::v4, kLoopbackV4);
  pass(Family::v4, kOwnV4);
  pass(Family::v6, kLoopbackV6);
  pass(Family::v6, kOwnV6);
}

// Connections over the loopback need no translation, so that the kernel need not remember them: what it remembers
// counts for no one's memory limit.
void leave_loopback_untracked(RuleWriter& writer) {
  const auto leave = [&](Family family, std::span<const std::uint8_t> prefix) {
    writer.begin_rule(kRaw);
    writer.if_destination(family, prefix.data(), prefix.size());
    writer.do_not_track();
    writer.end_rule();
  };
  leave(Family::v4, kLoopbackV4);
  leave(Family::v6, kLoopbackV6);
}

void write_filter(RuleWriter& writer, const RedirectPlan& plan) {
  let_own_pass(writer, kOut);
  for (const std::uint16_t port : plan.ports) {
    writer.begin_rule(kOut);
    writer.if_tcp();
    writer.if_port(port);
    writer.verdict(NFT_GOTO, kListed);
    writer.end_rule();
  }
  writer.begin_rule(kOut);
  writer.verdict(NFT_GOTO, kRefuse);
  writer.end_rule();

  const auto list = [&](Family family, const std::uint8_t* prefix, std::size_t size) {
    writer.begin_rule(kListed);
    writer.if_destination(family, prefix, size);
    writer.verdict(NF_ACCEPT);
    writer.end_rule();
  };
  list(Family::v4, kNamesV4, sizeof kNamesV4);
  list(Family::v6, kNamesV6, sizeof kNamesV6);
  for (const RedirectAddress& address : plan.addresses) {
    list(address.is_v6 ? Family::v6 : Family::v4, address.bytes, address.is_v6 ? 16 : 4);
  }
  writer.begin_rule(kListed);
  writer.verdict(NFT_GOTO, kRefuse);
  writer.end_rule();
}

// This chain sees the first packet of each connection. The kernel remembers a connection for two minutes after its end,
// in memory that counts for no one's limit; one whose first packet is dropped it does not, and TCP tries again.
void bound_connections(RuleWriter& writer, std::uint32_t per_second) {
  constexpr std::uint32_t kRate = 2;  // times what the relay takes
  constexpr std::uint32_t kBurstSeconds = 4;
  writer.begin_rule(kNat);
  writer.if_more_than(kRate * per_second, kBurstSeconds * per_second);
  writer.verdict(NF_DROP);
  writer.end_rule();
}

enum class Logging : bool { off, on };

void write_refusal(RuleWriter& writer, Logging logging) {
  if (logging == Logging::on) {
    writer.begin_rule(kRefuse);
    writer.log();
    writer.end_rule();
  }
  writer.begin_rule(kRefuse);
  writer.if_tcp();
  writer.reject(NFT_REJECT_TCP_RST, 0);
  writer.end_rule();
  writer.begin_rule(kRefuse);
  writer.reject(NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_PORT_UNREACH);
  writer.end_rule();
}

int add_rules(const RedirectPlan& plan, Logging logging) {
  const Fd socket_fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!socket_fd.is_open()) return -errno;
  alignas(nlmsghdr) std::byte memory[kMemoryBytes];
  NetlinkMessages messages(memory);
  RuleWriter writer(messages);
  writer.batch(NFNL_MSG_BATCH_BEGIN);
  writer.table();
  writer.chain(kRefuse);
  writer.chain(kListed);
  writer.base_chain(kRaw, "filter", kRawPriority);
  writer.base_chain(kOut, "filter", kFilterPriority);
  writer.base_chain(kNat, "nat", kNatPriority);
  leave_loopback_untracked(writer);
  write_filter(writer, plan);
  write_refusal(writer, logging);
  let_own_pass(writer, kNat);
  if (plan.connections_per_second > 0) bound_connections(writer, plan.connections_per_second);
  writer.begin_rule(kNat, NLM_F_ACK);
  writer.if_tcp();
  writer.redirect_to(kRelayPort);
  writer.end_rule();
  writer.batch(NFNL_MSG_BATCH_END);
  return messages.send(socket_fd.get());
}

// --- Sockets ----------------------------------------------------------------------------------------------------

// The group whose packets the log rule reports, one at a time. -errno where the kernel has none.
int open_refusals() {
  Fd socket_fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER));
  if (!socket_fd.is_open()) return -errno;
  constexpr std::uint16_t kConfigure = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
  const nfgenmsg header{AF_UNSPEC, NFNETLINK_V0, htons(kLogGroup)};
  std::byte memory[256];
  NetlinkMessages bind(memory);
  bind.begin(kConfigure, NLM_F_ACK, &header, sizeof header);
  const nfulnl_msg_config_cmd command{NFULNL_CFG_CMD_BIND};
  bind.attribute(NFULA_CFG_CMD, &command, sizeof command);
  if (const int result = bind.send(socket_fd.get()); result != 0) return result;
  NetlinkMessages mode(memory);
  mode.begin(kConfigure, NLM_F_ACK, &header, sizeof header);
  nfulnl_msg_config_mode copy{};
  copy.copy_range = htonl(128);
  copy.copy_mode = NFULNL_COPY_PACKET;
  mode.attribute(NFULA_CFG_MODE, &copy, sizeof copy);
  mode.be32(NFULA_CFG_QTHRESH, 1);
  if (const int result = mode.send(socket_fd.get()); result != 0) return result;
  return socket_fd.release();
}

int bind_loopback(Family family, int kind, std::uint16_t port) {
  Fd socket_fd(::socket(family == Family::v4 ? AF_INET : AF_INET6, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_fd.is_open()) return -errno;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  const int bound = family == Family::v4 ? ::bind(socket_fd.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof v4)
                                         : ::bind(socket_fd.get(), reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  if (bound != 0 || (kind == SOCK_STREAM && ::listen(socket_fd.get(), kBacklog) != 0)) return -errno;
  return socket_fd.release();
}

}  // namespace

int make_redirect(const RedirectPlan& plan, RedirectSockets* sockets) {
  const Fd routing(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!routing.is_open()) return -errno;
  if (const int result = add_routes(routing.get(), Family::v4, kOwnV4); result != 0) return result;
  sockets->relay_v6 = bind_loopback(Family::v6, SOCK_STREAM, kRelayPort);
  if (sockets->relay_v6 >= 0) {
    if (const int result = add_routes(routing.get(), Family::v6, kOwnV6); result != 0) return result;
  }
  widen_loopback(routing.get());
  sockets->refusals = open_refusals();
  const Logging logging = sockets->refusals >= 0 ? Logging::on : Logging::off;
  if (const int result = add_rules(plan, logging); result != 0) return result;
  for (const auto& [socket_fd, kind, port] :
       {std::tuple(&sockets->relay_v4, SOCK_STREAM, kRelayPort), std::tuple(&sockets->proxy, SOCK_STREAM, kProxyPort),
        std::tuple(&sockets->dns_udp, SOCK_DGRAM, std::uint16_t{53}),
        std::tuple(&sockets->dns_tcp, SOCK_STREAM, std::uint16_t{53})}) {
    *socket_fd = bind_loopback(Family::v4, kind, port);
    if (*socket_fd < 0) return *socket_fd;
  }
  return 0;
}

}  // namespace belljar::host
