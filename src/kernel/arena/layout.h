// Where things lie in the address space of every guest process. The same in all of them, so that pointers into the
// arena and into the kernel's image hold everywhere.
#pragma once

#include <cstdint>

namespace belljar::kernel {

inline constexpr std::uint64_t kPageSize = 4096;

constexpr std::uint64_t page_down(std::uint64_t value) {
  return value & ~(kPageSize - 1);
}
constexpr std::uint64_t page_up(std::uint64_t value) {
  return page_down(value + kPageSize - 1);
}

// The kernel's image: text and constants shared, data private to each process.
#ifdef __SANITIZE_THREAD__
inline constexpr std::uint64_t kKernelBase = 0x10'0000'0000;  // of tests: this sanitizer has the usual place for itself
#else
inline constexpr std::uint64_t kKernelBase = 0x6f00'0000'0000;
#endif

// Private to each process: kernel stacks, and what one thread alone needs.
inline constexpr std::uint64_t kPrivateBase = kKernelBase + 0x4000'0000;
inline constexpr std::uint64_t kPrivateSize = 0x4000'0000;

// The arena: one memfd, shared by all processes of the sandbox.
inline constexpr std::uint64_t kArenaBase = kKernelBase + 0x10'0000'0000;
inline constexpr std::uint64_t kArenaSize = 0x10'0000'0000;  // 64 GiB of address space; pages come with use

inline constexpr std::uint64_t kRingsOffset = 0;  // shared with the broker: see broker/rings_shm.h
inline constexpr std::uint64_t kRingsSize = 0x40'0000;
inline constexpr std::uint64_t kHeapOffset = kRingsOffset + kRingsSize;
inline constexpr std::uint64_t kHeapSize = 0x1000'0000;  // 256 MiB: objects of the kernel
inline constexpr std::uint64_t kFileDataOffset = kHeapOffset + kHeapSize;
inline constexpr std::uint64_t kFileDataSize = kArenaSize - kFileDataOffset;

// Contents of files of the image: a second memfd that the broker fills and guests can only read.
inline constexpr std::uint64_t kContentBase = kKernelBase + 0x40'0000'0000;
inline constexpr std::uint64_t kContentSize = 0x10'0000'0000;
// Behind it, the cache of contents that sandboxes share (tiers/kernel/content_cache_shm.h). Offsets of contents count
// on from the one file to the other.
inline constexpr std::uint64_t kCacheBase = kContentBase + kContentSize;
inline constexpr std::uint64_t kContentsEnd = 2 * kContentSize;

inline constexpr std::uint64_t kKernelEnd = kKernelBase + 0x80'0000'0000;

// Host descriptors in every guest process; nothing but mmap(2) may take them.
inline constexpr int kArenaFd = 3;
inline constexpr int kContentFd = 4;
inline constexpr int kCacheFd = 5;  // not open where there is no cache

// A place in one of these files, as mmap(2) takes it.
struct HostPlace {
  int fd = -1;
  std::uint64_t offset = 0;
};
constexpr HostPlace place_of_content(std::uint64_t offset) {
  return offset < kContentSize ? HostPlace{kContentFd, offset} : HostPlace{kCacheFd, offset - kContentSize};
}

// Where guest memory may be.
inline constexpr std::uint64_t kGuestLowest = 0x1'0000;
inline constexpr std::uint64_t kGuestEnd = 0x7fff'ffff'f000;

}  // namespace belljar::kernel
