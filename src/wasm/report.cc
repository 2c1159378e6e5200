#include "wasm/report.h"

#include <algorithm>
#include <cstring>

#include "base/utf8.h"

namespace belljar::wasm {
namespace {

constexpr std::uint32_t kMagic = 0x6D776A62;  // "bjwm"

struct Header {
  std::uint32_t magic;
  std::uint32_t exit_code;
  std::uint64_t fuel_used;
  std::uint64_t memory_bytes;
  std::uint32_t message_bytes;
  std::uint8_t ending;
  std::uint8_t padding[3];
};
static_assert(sizeof(Header) == 32);

}  // namespace

std::string encode(const Report& report) {
  const std::size_t size = std::min(report.message.size(), kReportBytesMax - sizeof(Header));
  const Header header{.magic = kMagic,
                      .exit_code = report.exit_code,
                      .fuel_used = report.fuel_used,
                      .memory_bytes = report.memory_bytes,
                      .message_bytes = static_cast<std::uint32_t>(size),
                      .ending = static_cast<std::uint8_t>(report.ending),
                      .padding = {}};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes.append(report.message, 0, size);
}

std::optional<Report> decode_report(std::string_view bytes) {
  Header header{};
  if (bytes.size() < sizeof header || bytes.size() > kReportBytesMax) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (header.magic != kMagic || header.message_bytes != bytes.size() ||
      header.ending > static_cast<std::uint8_t>(kEndingLast)) {
    return std::nullopt;
  }
  return Report{.ending = static_cast<Ending>(header.ending),
                .exit_code = header.exit_code,
                .fuel_used = header.fuel_used,
                .memory_bytes = header.memory_bytes,
                .message = one_line(bytes, kReportBytesMax)};
}

}  // namespace belljar::wasm
