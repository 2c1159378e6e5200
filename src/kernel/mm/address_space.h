// The guest's address space: what is mapped where. The host holds the mappings; this list tells what they are. Private
// to the process: a forked child has its own copy by the host's copy on write.
#pragma once

#include <cstdint>

#include "kernel/arena/ref.h"
#include "kernel/base/result.h"
#include "kernel/fs/file.h"

namespace belljar::kernel {

struct MemoryArea {
  enum class Kind : std::uint8_t { anonymous, file, heap, stack, vdso };
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // in the file
  Dentry* file = nullptr;    // a counted reference; null: anonymous, or a file without a name
  std::uint32_t protection = 0;
  Kind kind = Kind::anonymous;
  bool is_shared = false;
  bool is_read_only = false;   // shared, of a file that was not opened for writing
  bool is_patched = false;     // text of the text cache is mapped in place of the file's
  std::uint64_t image_id = 0;  // of a file of the image
};

// Once, in the first process.
void make_address_space();

struct MapRequest {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  int protection = 0;
  int flags = 0;  // mmap(2)
  File* file = nullptr;
  std::uint64_t offset = 0;
  MemoryArea::Kind kind = MemoryArea::Kind::anonymous;
};
// mmap(2); returns the address.
SysResult<std::uint64_t> map_memory(const MapRequest& request);
SysResult<void> unmap_memory(std::uint64_t address, std::uint64_t size);
SysResult<void> protect_memory(std::uint64_t address, std::uint64_t size, int protection);
SysResult<std::uint64_t> remap_memory(std::uint64_t address, std::uint64_t old_size, std::uint64_t new_size, int flags,
                                      std::uint64_t new_address);
// What lies past the end of a mapped file can't be reached: the host has no access there, and the fault becomes SIGBUS.
// When such a file changes its size, each process makes its own mappings fit before it goes on with guest code.
// `announce`: the size is changed already; any lock may be held.
void announce_file_sizes();
void adopt_file_sizes();
enum class FileFault : std::uint8_t { none, past_end, grown };
// A fault of the guest's at `address`, which wanted one of the accesses of mmap(2)'s `wanted`. `grown`: it may try
// again.
FileFault settle_file_fault(std::uint64_t address, std::uint32_t wanted);
// brk(2): the new end of the heap, or the old one where it can't move.
std::uint64_t set_heap_end(std::uint64_t end);
void set_heap_start(std::uint64_t start);

// Unmaps everything of the guest's, for execve(2).
void clear_address_space();
// Lets go of the files, at the end of the process.
void leave_address_space();

// The area that ends above `address`; false: there is none. For /proc/self/maps.
bool find_area(std::uint64_t address, MemoryArea* found);
// For the text cache, which holds the lock (lock_address_space_for_fork).
bool find_area_locked(std::uint64_t address, MemoryArea* found);
void mark_patched_locked(std::uint64_t address);

// fork(2): the child's copy of the list refers to the same files. The lock is held over it and the host's clone(2), so
// that both have the same list.
void hold_areas();
void release_areas();
void lock_address_space_for_fork();
void unlock_address_space_after_fork();

}  // namespace belljar::kernel
