#include "kernel/fs/long_text.h"

#include <cstring>
#include <utility>

namespace belljar::kernel {
namespace {

constexpr std::size_t kFirstSize = 1024;

}  // namespace

char* LongText::reserve(std::size_t size) {
  if (size_max_ - size_ >= size) return text_ + size_;
  std::size_t grown = size_max_ == 0 ? kFirstSize : size_max_ * 2;
  while (grown < size_ + size) grown *= 2;
  auto* const text = static_cast<char*>(heap_allocate(grown));
  if (text == nullptr) {
    is_whole_ = false;
    return nullptr;
  }
  if (size_ != 0) std::memcpy(text, text_, size_);
  heap_free(text_, size_max_);
  text_ = text;
  size_max_ = grown;
  return text_ + size_;
}

LongText& LongText::operator<<(std::string_view text) {
  if (text.empty()) return *this;
  char* const to = reserve(text.size());
  if (to == nullptr) return *this;
  std::memcpy(to, text.data(), text.size());
  size_ += text.size();
  return *this;
}

LongText& LongText::decimal(std::int64_t value) {
  char digits[24];
  return *this << TextWriter(digits, sizeof digits).decimal(value).text();
}

LongText& LongText::number(std::uint64_t value) {
  char digits[24];
  return *this << TextWriter(digits, sizeof digits).number(value).text();
}

LongText& LongText::hex(std::uint64_t value, int width) {
  char digits[24];
  return *this << TextWriter(digits, sizeof digits).hex(value, width).text();
}

LongText& LongText::octal(std::uint64_t value, int width) {
  char digits[24];
  return *this << TextWriter(digits, sizeof digits).octal(value, width).text();
}

LongText& LongText::column(std::uint64_t value, std::size_t width) {
  char digits[24];
  const std::string_view text = TextWriter(digits, sizeof digits).number(value).text();
  for (std::size_t i = text.size(); i < width; ++i) *this << ' ';
  return *this << text;
}

LongText& LongText::pad(std::size_t line_begin, std::size_t width) {
  while (size_ - line_begin < width && is_whole_) *this << ' ';
  return *this;
}

void LongText::swap(LongText& other) noexcept {
  std::swap(text_, other.text_);
  std::swap(size_, other.size_);
  std::swap(size_max_, other.size_max_);
  std::swap(is_whole_, other.is_whole_);
}

}  // namespace belljar::kernel
