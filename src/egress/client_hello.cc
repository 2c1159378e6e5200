#include "egress/client_hello.h"

#include <cstdint>
#include <optional>

namespace belljar::egress {
namespace {

constexpr unsigned kHandshakeRecord = 22;
constexpr unsigned kClientHelloMessage = 1;
constexpr unsigned kServerNameExtension = 0;
constexpr unsigned kHostNameType = 0;
constexpr unsigned kProtocolsExtension = 16;
constexpr std::size_t kRecordHeaderBytes = 5;
constexpr std::size_t kMessageHeaderBytes = 4;
constexpr std::size_t kRecordBytesMax = std::size_t{1} << 14;

// Reads big-endian numbers and blocks; once something is missing, all that follows is too.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::size_t number(std::size_t size) {
    const std::string_view bytes = block(size);
    std::size_t value = 0;
    for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  }

  std::string_view block(std::size_t size) {
    if (size > rest_.size()) {
      is_good_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  // A block with its length before it.
  std::string_view counted(std::size_t length_size) { return block(number(length_size)); }

  bool is_good() const { return is_good_; }
  bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool is_good_ = true;
};

// The host name of the extension; nothing where it is damaged or names more than one.
std::optional<std::string> read_server_name(std::string_view extension) {
  Reader outer(extension);
  Reader list(outer.counted(2));
  if (!outer.is_good() || !outer.is_empty()) return std::nullopt;
  std::optional<std::string> name;
  while (!list.is_empty()) {
    const std::size_t type = list.number(1);
    const std::string_view value = list.counted(2);
    if (!list.is_good() || type != kHostNameType || name || value.empty()) return std::nullopt;
    name = value;
  }
  return name;
}

// Nothing where the extension is damaged.
std::optional<std::vector<std::string>> read_protocols(std::string_view extension) {
  Reader outer(extension);
  Reader list(outer.counted(2));
  if (!outer.is_good() || !outer.is_empty()) return std::nullopt;
  std::vector<std::string> protocols;
  while (!list.is_empty()) {
    const std::string_view protocol = list.counted(1);
    if (!list.is_good() || protocol.empty()) return std::nullopt;
    protocols.emplace_back(protocol);
  }
  return protocols;
}

ClientHello read_message(std::string_view body) {
  const ClientHello damaged{ClientHello::State::no_hello, {}, {}};
  constexpr std::size_t kVersionAndRandomBytes = 2 + 32;
  Reader reader(body);
  reader.block(kVersionAndRandomBytes);
  reader.counted(1);  // session
  reader.counted(2);  // cipher suites
  reader.counted(1);  // compression methods
  ClientHello hello{ClientHello::State::whole, {}, {}};
  if (reader.is_good() && reader.is_empty()) return hello;
  Reader extensions(reader.counted(2));
  if (!reader.is_good() || !reader.is_empty()) return damaged;
  bool is_named = false;
  while (!extensions.is_empty()) {
    const std::size_t type = extensions.number(2);
    const std::string_view value = extensions.counted(2);
    if (!extensions.is_good()) return damaged;
    if (type == kProtocolsExtension) {
      auto protocols = read_protocols(value);
      if (!protocols || !hello.protocols.empty()) return damaged;
      hello.protocols = std::move(*protocols);
    }
    if (type != kServerNameExtension) continue;
    auto name = read_server_name(value);
    if (!name || is_named) return damaged;
    is_named = true;
    hello.server_name = std::move(*name);
  }
  return hello;
}

}  // namespace

ClientHello read_client_hello(std::string_view bytes) {
  const ClientHello none{ClientHello::State::no_hello, {}, {}};
  std::string message;  // the handshake message, put together from its records
  std::string_view rest = bytes;
  while (rest.size() + 2 * kClientHelloBytesMax >= bytes.size()) {
    if (!rest.empty() && static_cast<unsigned char>(rest[0]) != kHandshakeRecord) return none;
    if (rest.size() > 1 && rest[1] != 3) return none;
    if (rest.size() < kRecordHeaderBytes) return {};
    const std::size_t length =
        static_cast<std::size_t>(static_cast<unsigned char>(rest[3])) << 8 | static_cast<unsigned char>(rest[4]);
    if (length == 0 || length > kRecordBytesMax) return none;
    const std::string_view fragment = rest.substr(kRecordHeaderBytes, length);
    message += fragment;
    if (!message.empty() && static_cast<unsigned char>(message[0]) != kClientHelloMessage) return none;
    if (message.size() >= kMessageHeaderBytes) {
      Reader header(std::string_view(message).substr(1, 3));
      const std::size_t wanted = header.number(3);
      if (wanted > kClientHelloBytesMax) return none;
      if (message.size() >= kMessageHeaderBytes + wanted) {
        return read_message(std::string_view(message).substr(kMessageHeaderBytes, wanted));
      }
    }
    if (fragment.size() < length) return {};
    rest.remove_prefix(kRecordHeaderBytes + length);
  }
  return none;  // the records are too small
}

}  // namespace belljar::egress
