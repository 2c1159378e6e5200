// What the compiler calls for copies and comparisons, where no C library is.
// Else the compiler makes calls of these functions out of their own loops.
#pragma GCC optimize("no-tree-loop-distribute-patterns")

#include <cstddef>
#include <cstdint>

extern "C" {

void* memcpy(void* to, const void* from, std::size_t size) {
  void* const start = to;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
  return start;
}

void* memset(void* to, int value, std::size_t size) {
  void* const start = to;
  asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
  return start;
}

void* memmove(void* to, const void* from, std::size_t size) {
  auto* const target = static_cast<unsigned char*>(to);
  const auto* const source = static_cast<const unsigned char*>(from);
  if (target - source >= static_cast<std::ptrdiff_t>(size) || target < source) return memcpy(to, from, size);
  for (std::size_t i = size; i > 0; --i) target[i - 1] = source[i - 1];
  return to;
}

int memcmp(const void* left, const void* right, std::size_t size) {
  const auto* const a = static_cast<const unsigned char*>(left);
  const auto* const b = static_cast<const unsigned char*>(right);
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) <= size; i += sizeof(std::uint64_t)) {
    std::uint64_t x, y;
    __builtin_memcpy(&x, a + i, sizeof x);
    __builtin_memcpy(&y, b + i, sizeof y);
    if (x != y) break;
  }
  for (; i < size; ++i) {
    if (a[i] != b[i]) return a[i] - b[i];
  }
  return 0;
}

std::size_t strlen(const char* text) {
  std::size_t size = 0;
  while (text[size] != '\0') ++size;
  return size;
}

std::size_t strnlen(const char* text, std::size_t size) {
  std::size_t length = 0;
  while (length < size && text[length] != '\0') ++length;
  return length;
}

void* memchr(const void* memory, int wanted, std::size_t size) {
  const auto* const bytes = static_cast<const unsigned char*>(memory);
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] == static_cast<unsigned char>(wanted)) return const_cast<unsigned char*>(bytes + i);
  }
  return nullptr;
}

// Pure virtual functions, and the end of globals: neither happens.
void __cxa_pure_virtual() {
  __builtin_trap();
}
int __cxa_atexit(void (*)(void*), void*, void*) {
  return 0;
}
void* __dso_handle = nullptr;
}

// Objects of the arena are freed by heap_free(); the compiler asks for this in deleting destructors, which nobody
// calls.
void operator delete(void*, std::size_t) noexcept {
  __builtin_trap();
}
void operator delete(void*) noexcept {
  __builtin_trap();
}

// string_view::substr() past the end.
namespace std {
void __throw_out_of_range_fmt(const char*, ...) {
  __builtin_trap();
}
}  // namespace std
