#include "kernel/arena/heap.h"

#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <new>

#include "kernel/arena/roots.h"
#include "kernel/host/calls.h"

namespace belljar::kernel {
namespace {

constexpr std::size_t kSmallest = 16;
// Freed blocks from here on give their pages back to the host.
constexpr std::size_t kReturnFrom = 64U << 10;

int class_of(std::size_t size) {
  const std::size_t rounded = std::bit_ceil(size < kSmallest ? kSmallest : size);
  return std::countr_zero(rounded) - std::countr_zero(kSmallest);
}

std::size_t size_of_class(int index) {
  return kSmallest << index;
}

// Small classes are cut from whole pages, so that objects of one kind lie close together.
void* take_fresh(HeapState& heap, int index) {
  const std::size_t size = size_of_class(index);
  const std::uint64_t taken = size < kPageSize ? kPageSize : size;
  if (heap.fresh + taken > kArenaBase + kHeapOffset + kHeapSize) return nullptr;
  const std::uint64_t block = heap.fresh;
  heap.fresh += taken;
  for (std::uint64_t next = block + taken - size; next > block; next -= size) {
    void** const link = reinterpret_cast<void**>(next);
    *link = heap.free[index];
    heap.free[index] = link;
  }
  return reinterpret_cast<void*>(block);
}

}  // namespace

void make_arena_roots() {
  ArenaRoots* const roots = new (&arena_roots()) ArenaRoots;
  roots->heap.fresh = page_up(reinterpret_cast<std::uint64_t>(roots + 1));
}

void* heap_allocate(std::size_t size) {
  if (size > kHeapObjectMax) return nullptr;
  const int index = class_of(size);
  HeapState& heap = arena_roots().heap;
  void* block = nullptr;
  bool is_fresh = false;
  {
    LockGuard guard(heap.lock);
    block = heap.free[index];
    if (block != nullptr) {
      heap.free[index] = *static_cast<void**>(block);
    } else {
      block = take_fresh(heap, index);
      is_fresh = true;
    }
    if (block == nullptr) return nullptr;
    heap.used += size_of_class(index);
    ++heap.objects[index];
  }
  if (is_fresh) return block;
  const std::size_t dirty = size_of_class(index) >= kReturnFrom ? kPageSize : size_of_class(index);
  return std::memset(block, 0, dirty);
}

void heap_free(void* memory, std::size_t size) {
  if (memory == nullptr) return;
  const int index = class_of(size);
  const std::size_t block_size = size_of_class(index);
  if (block_size >= kReturnFrom) {
    const std::uint64_t rest = reinterpret_cast<std::uint64_t>(memory) + kPageSize;
    if (host::madvise(rest, block_size - kPageSize, MADV_REMOVE) != 0) {
      std::memset(reinterpret_cast<void*>(rest), 0, block_size - kPageSize);
    }
  }
  HeapState& heap = arena_roots().heap;
  LockGuard guard(heap.lock);
  *static_cast<void**>(memory) = heap.free[index];
  heap.free[index] = memory;
  heap.used -= block_size;
  --heap.objects[index];
}

HeapUse heap_use() {
  HeapState& heap = arena_roots().heap;
  HeapUse use;
  LockGuard guard(heap.lock);
  for (int index = 0; index < HeapState::kClasses; ++index)
    use.classes[index] = {size_of_class(index), heap.objects[index]};
  return use;
}

std::uint64_t heap_bytes_used() {
  HeapState& heap = arena_roots().heap;
  LockGuard guard(heap.lock);
  return heap.used;
}

}  // namespace belljar::kernel
