// Counts heap_bytes. The linker sends all calls of malloc(3) and its kin here (CMakeLists.txt: --wrap), those within
// libraries as well.
#include <malloc.h>

#include "egress/heap.h"

// The names are the linker's: NOLINTBEGIN(readability-identifier-naming)
extern "C" {

void* __real_malloc(std::size_t);
void* __real_calloc(std::size_t, std::size_t);
void* __real_realloc(void*, std::size_t);
void __real_free(void*);
void* __wrap_malloc(std::size_t);
void* __wrap_calloc(std::size_t, std::size_t);
void* __wrap_realloc(void*, std::size_t);
void __wrap_free(void*);

namespace {

std::ptrdiff_t size_of(void* memory) {
  return static_cast<std::ptrdiff_t>(::malloc_usable_size(memory));
}

void* counted(void* memory) {
  belljar::egress::heap_bytes += size_of(memory);
  return memory;
}

}  // namespace

void* __wrap_malloc(std::size_t size) {
  return counted(__real_malloc(size));
}

void* __wrap_calloc(std::size_t count, std::size_t size) {
  return counted(__real_calloc(count, size));
}

void* __wrap_realloc(void* old, std::size_t size) {
  const std::ptrdiff_t before = size_of(old);
  void* const memory = __real_realloc(old, size);
  const bool is_done = memory != nullptr || size == 0;
  if (is_done) belljar::egress::heap_bytes -= before;
  return is_done ? counted(memory) : nullptr;
}

void __wrap_free(void* memory) {
  belljar::egress::heap_bytes -= size_of(memory);
  __real_free(memory);
}
}
// NOLINTEND(readability-identifier-naming)
