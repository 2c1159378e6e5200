#include "egress/dns_message.h"

#include <algorithm>

#include "spec/host_name.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kNameBytesMax = 255;
constexpr unsigned kPointersMax = 32;
constexpr std::uint16_t kIsAnswer = 0x8000;
constexpr std::uint16_t kOpcodeMask = 0x7800;
constexpr std::uint16_t kAuthoritative = 0x0400;
constexpr std::uint16_t kTruncated = 0x0200;
constexpr std::uint16_t kRecursionWanted = 0x0100;
constexpr std::uint16_t kRecursionOffered = 0x0080;
constexpr std::uint16_t kCodeMask = 0x000f;
constexpr std::uint16_t kTypeCname = 5;
constexpr std::uint16_t kNameOfQuestion = 0xc00c;  // a pointer to it
// So long that a program asks once, and so short that one which keeps answers on a disk forgets them.
constexpr std::uint32_t kAnswerSeconds = 300;

std::uint16_t get16(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[at]) << 8 |
                                    static_cast<unsigned char>(bytes[at + 1]));
}

void put16(std::string& out, unsigned value) {
  out += static_cast<char>(value >> 8 & 0xff);
  out += static_cast<char>(value & 0xff);
}

void put32(std::string& out, std::uint32_t value) {
  put16(out, value >> 16);
  put16(out, value & 0xffff);
}

// Reads the name at `*at` and moves `*at` behind it. Dots inside labels make it a name that no host has: the text then
// is not one that parse_host() takes. Nothing where it runs out of the message or in circles.
std::optional<std::string> read_name(std::string_view message, std::size_t* at) {
  std::string name;
  std::size_t position = *at;
  bool has_jumped = false;
  unsigned pointers = 0;
  while (true) {
    if (position >= message.size()) return std::nullopt;
    const auto length = static_cast<unsigned char>(message[position]);
    if (length == 0) {
      if (!has_jumped) *at = position + 1;
      return name;
    }
    if ((length & 0xc0U) == 0xc0U) {
      if (position + 1 >= message.size() || ++pointers > kPointersMax) return std::nullopt;
      if (!has_jumped) *at = position + 2;
      has_jumped = true;
      position = get16(message, position) & 0x3fffU;
      continue;
    }
    if ((length & 0xc0U) != 0 || position + 1 + length > message.size()) return std::nullopt;
    const std::string_view label = message.substr(position + 1, length);
    if (name.size() + length + 1 > kNameBytesMax) return std::nullopt;
    if (!name.empty()) name += '.';
    name += label.find('.') == std::string_view::npos ? label : std::string_view("*");
    position += 1 + length;
  }
}

// Whether the name of a question, which ends before `end`, refers to another place. It has no need to, and in the
// answer, where it is repeated, it would refer to something else.
bool has_pointer(std::string_view message, std::size_t end) {
  for (std::size_t at = kHeaderBytes; at < end; at += 1U + static_cast<unsigned char>(message[at])) {
    if ((static_cast<unsigned char>(message[at]) & 0xc0U) != 0) return true;
  }
  return false;
}

std::string host_text(const std::string& name) {
  const auto host = parse_host(name);
  return host && !host->is_literal() ? host->text : std::string();
}

struct Record {
  std::string owner;
  std::uint16_t type = 0;
  std::uint16_t klass = 0;
  std::size_t data = 0;
  std::size_t data_size = 0;
};

std::optional<Record> read_record(std::string_view message, std::size_t* at) {
  Record record;
  auto owner = read_name(message, at);
  constexpr std::size_t kFixedBytes = 10;
  if (!owner || message.size() - *at < kFixedBytes) return std::nullopt;
  record.owner = host_text(*owner);
  record.type = get16(message, *at);
  record.klass = get16(message, *at + 2);
  record.data_size = get16(message, *at + 8);
  record.data = *at + kFixedBytes;
  if (message.size() - record.data < record.data_size) return std::nullopt;
  *at = record.data + record.data_size;
  return record;
}

// Adds what the record says of the current alias of the name.
bool use_record(std::string_view message, const Record& record, std::uint16_t type, std::string* alias,
                DnsAnswer* answer) {
  if (record.klass != kDnsClassIn || record.owner.empty() || record.owner != *alias) return true;
  if (record.type == kTypeCname) {
    std::size_t at = record.data;
    const auto target = read_name(message, &at);
    if (!target) return false;
    *alias = host_text(*target);
    return true;
  }
  const std::size_t size = type == kDnsTypeA ? 4 : 16;
  if (record.type != type || record.data_size != size) return true;
  IpAddress address{.family = type == kDnsTypeA ? IpFamily::v4 : IpFamily::v6};
  std::copy_n(message.begin() + static_cast<std::ptrdiff_t>(record.data), size, address.bytes.begin());
  answer->addresses.push_back(address);
  return true;
}

}  // namespace

std::optional<DnsQuestion> parse_dns_question(std::string_view message) {
  if (message.size() < kHeaderBytes) return std::nullopt;
  const std::uint16_t flags = get16(message, 2);
  if ((flags & (kIsAnswer | kOpcodeMask)) != 0 || get16(message, 4) != 1) return std::nullopt;
  DnsQuestion question;
  question.id = get16(message, 0);
  question.wants_recursion = (flags & kRecursionWanted) != 0;
  std::size_t at = kHeaderBytes;
  const auto name = read_name(message, &at);
  if (!name || message.size() - at < 4 || has_pointer(message, at)) return std::nullopt;
  question.name = host_text(*name);
  question.type = get16(message, at);
  question.klass = get16(message, at + 2);
  question.wire = message.substr(kHeaderBytes, at + 4 - kHeaderBytes);
  return question;
}

std::string make_dns_answer(const DnsQuestion& question, DnsCode code, std::span<const IpAddress> addresses) {
  std::string out;
  put16(out, question.id);
  put16(out, kIsAnswer | kAuthoritative | kRecursionOffered | (question.wants_recursion ? kRecursionWanted : 0U) |
                 static_cast<unsigned>(code));
  put16(out, 1);
  put16(out, static_cast<unsigned>(addresses.size()));
  put16(out, 0);
  put16(out, 0);
  out += question.wire;
  for (const IpAddress& address : addresses) {
    const std::size_t size = address.family == IpFamily::v4 ? 4 : 16;
    put16(out, kNameOfQuestion);
    put16(out, address.family == IpFamily::v4 ? kDnsTypeA : kDnsTypeAaaa);
    put16(out, kDnsClassIn);
    put32(out, kAnswerSeconds);
    put16(out, static_cast<unsigned>(size));
    out.append(reinterpret_cast<const char*>(address.bytes.data()), size);
  }
  return out;
}

std::string make_dns_question(std::uint16_t id, std::string_view name, std::uint16_t type) {
  std::string out;
  put16(out, id);
  put16(out, kRecursionWanted);
  put16(out, 1);
  put16(out, 0);
  put16(out, 0);
  put16(out, 0);
  while (!name.empty()) {
    const std::string_view label = name.substr(0, name.find('.'));
    out += static_cast<char>(label.size());
    out += label;
    name.remove_prefix(std::min(label.size() + 1, name.size()));
  }
  out += '\0';
  put16(out, type);
  put16(out, kDnsClassIn);
  return out;
}

std::optional<DnsAnswer> parse_dns_answer(std::string_view message, std::uint16_t id, std::string_view name,
                                          std::uint16_t type) {
  if (message.size() < kHeaderBytes || get16(message, 0) != id) return std::nullopt;
  const std::uint16_t flags = get16(message, 2);
  if ((flags & kIsAnswer) == 0 || get16(message, 4) != 1) return std::nullopt;
  std::size_t at = kHeaderBytes;
  const auto asked = read_name(message, &at);
  if (!asked || message.size() - at < 4 || host_text(*asked) != name) return std::nullopt;
  if (get16(message, at) != type || get16(message, at + 2) != kDnsClassIn) return std::nullopt;
  at += 4;
  DnsAnswer answer;
  answer.code = static_cast<DnsCode>(flags & kCodeMask);
  answer.is_truncated = (flags & kTruncated) != 0;
  std::string alias(name);
  for (unsigned left = get16(message, 6); left > 0; --left) {
    const auto record = read_record(message, &at);
    // A cut answer is whole up to the cut.
    if (!record || !use_record(message, *record, type, &alias, &answer)) break;
  }
  return answer;
}

}  // namespace belljar::egress
