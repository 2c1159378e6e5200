#include "egress/socks.h"

#include <algorithm>

namespace belljar::egress {
namespace {

constexpr std::size_t kUserBytesMax = 255;
constexpr unsigned kConnect = 1;
constexpr unsigned kAddressV4 = 1;
constexpr unsigned kAddressName = 3;
constexpr unsigned kAddressV6 = 4;

unsigned byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

unsigned port_at(std::string_view bytes, std::size_t at) {
  return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1);
}

Host host_of(IpFamily family, std::string_view bytes) {
  IpAddress address{.family = family};
  std::ranges::transform(bytes, address.bytes.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
  return {format_ip(address), address};
}

SocksRequest broken(unsigned version, std::optional<SocksReply> reply, std::string shown = {}) {
  SocksRequest request{.kind = SocksRequest::Kind::broken, .version = version};
  request.reply = reply;
  request.shown = std::move(shown);
  return request;
}

SocksRequest connect_to(unsigned version, std::optional<Host> host, std::string_view text, unsigned port,
                        std::size_t size) {
  if (!host || port == 0) return broken(version, SocksReply::not_allowed, std::string(text));
  SocksRequest request{.kind = SocksRequest::Kind::connect, .version = version, .size = size};
  request.host = std::move(*host);
  request.port = port;
  return request;
}

SocksRequest read_version_4(std::string_view bytes) {
  constexpr std::size_t kFixedBytes = 8;
  if (bytes.size() < kFixedBytes) return {.version = 4};
  if (byte_at(bytes, 1) != kConnect) return broken(4, SocksReply::bad_command);
  const std::size_t user_end = bytes.find('\0', kFixedBytes);
  if (std::min(user_end, bytes.size()) > kFixedBytes + kUserBytesMax) return broken(4, SocksReply::failed);
  if (user_end == std::string_view::npos) return {.version = 4};
  const std::string_view address = bytes.substr(4, 4);
  const bool has_name = address.starts_with(std::string_view("\0\0\0", 3)) && address[3] != 0;
  if (!has_name) return connect_to(4, host_of(IpFamily::v4, address), {}, port_at(bytes, 2), user_end + 1);
  const std::size_t name_end = bytes.find('\0', user_end + 1);
  if (std::min(name_end, bytes.size()) > user_end + 1 + kHostBytesMax) return broken(4, SocksReply::failed);
  if (name_end == std::string_view::npos) return {.version = 4};
  const std::string_view name = bytes.substr(user_end + 1, name_end - user_end - 1);
  return connect_to(4, parse_host(name), name, port_at(bytes, 2), name_end + 1);
}

SocksRequest read_greeting(std::string_view bytes) {
  if (bytes.size() < 2) return {};
  const std::size_t size = 2 + byte_at(bytes, 1);
  if (bytes.size() < size) return {};
  const bool is_open = bytes.substr(2, size - 2).find('\0') != std::string_view::npos;
  if (!is_open) return broken(5, std::nullopt);
  return {.kind = SocksRequest::Kind::greeting, .size = size};
}

SocksRequest read_version_5(std::string_view bytes) {
  constexpr std::size_t kFixedBytes = 4;
  if (bytes.size() < kFixedBytes + 1) return {};
  if (byte_at(bytes, 1) != kConnect) return broken(5, SocksReply::bad_command);
  const unsigned type = byte_at(bytes, 3);
  const bool is_name = type == kAddressName;
  if (!is_name && type != kAddressV4 && type != kAddressV6) return broken(5, SocksReply::bad_command);
  const std::size_t start = kFixedBytes + (is_name ? 1 : 0);
  const std::size_t length = is_name ? byte_at(bytes, kFixedBytes) : type == kAddressV4 ? 4U : 16U;
  if (bytes.size() < start + length + 2) return {};
  const std::string_view address = bytes.substr(start, length);
  const unsigned port = port_at(bytes, start + length);
  const std::size_t size = start + length + 2;
  if (is_name) return connect_to(5, parse_host(address), address, port, size);
  return connect_to(5, host_of(type == kAddressV4 ? IpFamily::v4 : IpFamily::v6, address), {}, port, size);
}

}  // namespace

bool is_socks(std::string_view bytes) {
  return !bytes.empty() && (bytes[0] == 4 || bytes[0] == 5);
}

SocksRequest read_socks(std::string_view bytes, bool is_greeted) {
  if (bytes.empty()) return {};
  if (bytes[0] == 4 && !is_greeted) return read_version_4(bytes);
  if (bytes[0] != 5) return broken(5, std::nullopt);
  return is_greeted ? read_version_5(bytes) : read_greeting(bytes);
}

std::string make_socks_reply(unsigned version, SocksReply reply) {
  if (version == 4) {
    return std::string{0, static_cast<char>(reply == SocksReply::granted ? 90 : 91), 0, 0, 0, 0, 0, 0};
  }
  const auto code = [&] {
    switch (reply) {
      case SocksReply::granted:
        return 0;
      case SocksReply::failed:
        return 1;
      case SocksReply::not_allowed:
        return 2;
      case SocksReply::unreachable:
        return 4;
      case SocksReply::refused:
        return 5;
      case SocksReply::bad_command:
        return 7;
    }
    return 1;
  }();
  return std::string{5, static_cast<char>(code), 0, 1, 0, 0, 0, 0, 0, 0};
}

}  // namespace belljar::egress
