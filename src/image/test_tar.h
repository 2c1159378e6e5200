// Tar archives for tests, also such as no honest tool makes. (pax: POSIX.1-2001, ustar interchange format.)
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::test_tar {

struct Entry {
  std::string name;
  char type = '0';  // '0' file, '1' hard link, '2' link, '3' device, '5' folder, '6' FIFO
  std::string content;
  std::string link;
  unsigned mode = 0644;
  unsigned uid = 0;
  unsigned gid = 0;
  std::string pax;  // records of an extended header, as pax_record() makes them
};

inline std::string padded(std::string bytes) {
  bytes.resize((bytes.size() + 511) / 512 * 512, '\0');
  return bytes;
}

inline std::string header(std::string_view name, char type, std::size_t size, const Entry& entry) {
  std::string block(512, '\0');
  const auto put = [&block](std::size_t offset, std::string_view text) {
    std::ranges::copy(text, block.begin() + static_cast<std::ptrdiff_t>(offset));
  };
  put(0, name.substr(0, 100));
  put(100, fmt::format("{:07o}", entry.mode));
  put(108, fmt::format("{:07o}", entry.uid));
  put(116, fmt::format("{:07o}", entry.gid));
  put(124, fmt::format("{:011o}", size));
  put(136, fmt::format("{:011o}", 1'000'000'000));
  put(148, "        ");
  block[156] = type;
  put(157, std::string_view(entry.link).substr(0, 100));
  put(257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + '\0' + ' ');
  return block;
}

// "LENGTH KEY=VALUE\n", where LENGTH counts itself.
inline std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + fmt::formatted_size("{}", rest);
  length = rest + fmt::formatted_size("{}", length);
  return fmt::format("{} {}={}\n", length, key, value);
}

inline std::string one(const Entry& entry) {
  std::string bytes;
  if (!entry.pax.empty()) bytes += header("pax", 'x', entry.pax.size(), {}) + padded(entry.pax);
  return bytes + header(entry.name, entry.type, entry.content.size(), entry) + padded(entry.content);
}

inline std::string archive(const std::vector<Entry>& entries) {
  std::string bytes;
  for (const Entry& entry : entries) bytes += one(entry);
  return bytes.append(1024, '\0');
}

}  // namespace belljar::test_tar
