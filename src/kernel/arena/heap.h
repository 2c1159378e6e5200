// Memory for the kernel's objects, in the arena: a slab allocator by powers of two. Any thread of any process may free
// what another has allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "kernel/base/result.h"

namespace belljar::kernel {

inline constexpr std::size_t kHeapObjectMax = 64U << 20;

// Zeroed memory, aligned to 16 bytes; nullptr when the heap is full (the caller answers ENOMEM).
void* heap_allocate(std::size_t size);
// `size` as it was allocated.
void heap_free(void* memory, std::size_t size);

// How many objects are in use of each class of sizes.
inline constexpr int kHeapClasses = 23;  // 16 bytes to 64 MiB
struct HeapUse {
  struct Class {
    std::size_t size;
    std::uint64_t objects;
  };
  Class classes[kHeapClasses];
};
HeapUse heap_use();

// Bytes in use, rounded up to their classes; for tests of leaks and sysinfo(2).
std::uint64_t heap_bytes_used();

// Allocates and constructs; nullptr when the heap is full.
template <typename T, typename... Arguments>
T* make_object(Arguments&&... arguments) {
  void* memory = heap_allocate(sizeof(T));
  return memory == nullptr ? nullptr : new (memory) T(std::forward<Arguments>(arguments)...);
}

template <typename T>
void delete_object(T* object) {
  if (object == nullptr) return;
  object->~T();
  heap_free(object, sizeof(T));
}

}  // namespace belljar::kernel
