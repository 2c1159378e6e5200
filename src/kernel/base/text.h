// Text made into fixed memory: for /proc, traces and messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace belljar::kernel {

// Appends to memory of the caller's; what does not fit is left out.
class TextWriter {
 public:
  TextWriter(char* to, std::size_t size) : to_(to), size_(size) {}

  TextWriter& operator<<(std::string_view text) {
    const std::size_t count = text.size() < size_ - used_ ? text.size() : size_ - used_;
    std::memcpy(to_ + used_, text.data(), count);
    used_ += count;
    return *this;
  }
  TextWriter& operator<<(char character) { return *this << std::string_view(&character, 1); }
  TextWriter& decimal(std::int64_t value) {
    if (value < 0) *this << '-';
    return digits(value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value), 10, 1);
  }
  TextWriter& number(std::uint64_t value) { return digits(value, 10, 1); }
  TextWriter& hex(std::uint64_t value, int width = 1) { return digits(value, 16, width); }
  TextWriter& octal(std::uint64_t value, int width = 1) { return digits(value, 8, width); }

  std::string_view text() const { return {to_, used_}; }

 private:
  TextWriter& digits(std::uint64_t value, unsigned base, int width) {
    char reversed[24];
    int count = 0;
    do {
      reversed[count++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    for (; width > count; --width) *this << '0';
    while (count > 0) *this << reversed[--count];
    return *this;
  }

  char* to_;
  std::size_t size_;
  std::size_t used_ = 0;
};

}  // namespace belljar::kernel
