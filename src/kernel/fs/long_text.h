// Text that grows in the heap: what a file of /proc, /dev or /sys shows.
#pragma once

#include "kernel/arena/heap.h"
#include "kernel/base/text.h"

namespace belljar::kernel {

class LongText {
 public:
  LongText() = default;
  LongText(LongText&& other) noexcept { swap(other); }
  LongText& operator=(LongText&& other) noexcept {
    swap(other);
    return *this;
  }
  ~LongText() { heap_free(text_, size_max_); }

  // What does not fit into the heap is left out, and is_whole() tells it.
  LongText& operator<<(std::string_view text);
  LongText& operator<<(char character) { return *this << std::string_view(&character, 1); }
  LongText& decimal(std::int64_t value);
  LongText& number(std::uint64_t value);
  LongText& hex(std::uint64_t value, int width = 1);
  LongText& octal(std::uint64_t value, int width = 1);
  // Numbers in a column: filled up with spaces on the left.
  LongText& column(std::uint64_t value, std::size_t width);
  // Spaces until the text since `line_begin` is `width` long.
  LongText& pad(std::size_t line_begin, std::size_t width);

  // Room for `size` bytes more, which the caller fills and then tells by commit(); null where there is none.
  char* reserve(std::size_t size);
  void commit(std::size_t size) { size_ += size; }

  std::string_view text() const { return {text_, size_}; }
  std::size_t size() const { return size_; }
  bool is_whole() const { return is_whole_; }

 private:
  void swap(LongText& other) noexcept;

  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::size_t size_max_ = 0;
  bool is_whole_ = true;
};

}  // namespace belljar::kernel
