// The numbers and layouts of WASI preview 1 (wasi_snapshot_preview1), as its specification has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace belljar::wasm {

enum class WasiErrno : std::uint16_t {
#define WASI_ERRNO(name, number, host) name = number,
#include "wasm/wasi_errno.def"
#undef WASI_ERRNO
};

// For an errno of the host; `io` for one that WASI has no number for.
WasiErrno wasi_errno(int host_errno);

enum class FileKind : std::uint8_t {
  unknown = 0,
  block_device = 1,
  character_device = 2,
  directory = 3,
  regular_file = 4,
  socket_stream = 6,
  symbolic_link = 7,
};

FileKind file_kind_of_mode(unsigned mode);          // st_mode, inode(7)
FileKind file_kind_of_entry(unsigned char d_type);  // readdir(3)

namespace rights {
inline constexpr std::uint64_t kRead = 1U << 1;
inline constexpr std::uint64_t kSeek = 1U << 2;
inline constexpr std::uint64_t kTell = 1U << 5;
inline constexpr std::uint64_t kWrite = 1U << 6;
inline constexpr std::uint64_t kAllocate = 1U << 8;
inline constexpr std::uint64_t kReaddir = 1U << 14;
inline constexpr std::uint64_t kSetSize = 1U << 22;
inline constexpr std::uint64_t kAll = (1U << 28) - 1;  // all but those of sockets
}  // namespace rights

namespace fdflag {
inline constexpr std::uint32_t kAppend = 1;
inline constexpr std::uint32_t kDsync = 2;
inline constexpr std::uint32_t kNonblock = 4;
inline constexpr std::uint32_t kRsync = 8;
inline constexpr std::uint32_t kSync = 16;
}  // namespace fdflag

namespace oflag {
inline constexpr std::uint32_t kCreate = 1;
inline constexpr std::uint32_t kDirectory = 2;
inline constexpr std::uint32_t kExclusive = 4;
inline constexpr std::uint32_t kTruncate = 8;
}  // namespace oflag

namespace fstflag {
inline constexpr std::uint32_t kAccess = 1;
inline constexpr std::uint32_t kAccessNow = 2;
inline constexpr std::uint32_t kModify = 4;
inline constexpr std::uint32_t kModifyNow = 8;
}  // namespace fstflag

inline constexpr std::uint32_t kFollowLinks = 1;  // of lookupflags

struct GuestVector {
  std::uint32_t address;
  std::uint32_t size;
};
static_assert(sizeof(GuestVector) == 8);

struct FdStat {
  FileKind kind;
  std::uint8_t padding;
  std::uint16_t flags;
  std::uint32_t more_padding;
  std::uint64_t rights;
  std::uint64_t rights_inheriting;
};
static_assert(sizeof(FdStat) == 24);

struct FileStat {
  std::uint64_t device;
  std::uint64_t inode;
  FileKind kind;
  std::uint8_t padding[7];
  std::uint64_t links;
  std::uint64_t size;
  std::uint64_t access_ns;
  std::uint64_t modify_ns;
  std::uint64_t change_ns;
};
static_assert(sizeof(FileStat) == 64);

struct DirectoryEntry {
  std::uint64_t next;
  std::uint64_t inode;
  std::uint32_t name_size;
  FileKind kind;
  std::uint8_t padding[3];
};
static_assert(sizeof(DirectoryEntry) == 24);

struct Prestat {
  std::uint32_t tag;  // 0: a folder
  std::uint32_t name_size;
};

enum class EventKind : std::uint8_t { clock = 0, fd_read = 1, fd_write = 2 };

struct Subscription {
  std::uint64_t user_data;
  EventKind kind;
  std::uint8_t padding[7];
  std::uint32_t clock_or_fd;
  std::uint32_t more_padding;
  std::uint64_t timeout_ns;
  std::uint64_t precision_ns;
  std::uint16_t flags;  // 1: the timeout is a point in time
  std::uint8_t last_padding[6];
};
static_assert(sizeof(Subscription) == 48);

struct Event {
  std::uint64_t user_data;
  WasiErrno error;
  EventKind kind;
  std::uint8_t padding[5];
  std::uint64_t bytes;
  std::uint16_t flags;  // 1: the other end is closed
  std::uint8_t more_padding[6];
};
static_assert(sizeof(Event) == 32);

}  // namespace belljar::wasm
