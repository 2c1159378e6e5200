// What guests and the broker share: the first part of the arena. The broker treats all of it as hostile: it reads each
// value once, takes no pointers, and checks every offset.
#pragma once

#include <linux/filter.h>

#include <atomic>
#include <cstdint>

#include "kernel/arena/layout.h"

namespace belljar::kernel::shm {

// A pipe between a guest and one of the broker's standard streams. `written` and `taken` count bytes; what lies between
// is at `data[count % size]`.
struct Stream {
  static constexpr std::uint32_t kSize = 0x1'0000;
  std::atomic<std::uint32_t> written;   // futex: the taker waits on it
  std::atomic<std::uint32_t> taken;     // futex: the writer waits on it
  std::atomic<std::uint32_t> is_ended;  // no more will be written (stdin), or nobody takes any more (stdout, stderr)
  std::atomic<std::uint32_t> taker_waits;
  std::atomic<std::uint32_t> writer_waits;
  std::uint32_t padding[11];
  std::uint8_t data[kSize];
};
enum StreamIndex : std::uint32_t { kStdin, kStdout, kStderr, kStreams };

enum class Operation : std::uint32_t {
  stat = 1,       // facts of `path`, relative to the root; no part of it may be a link
  read_link = 2,  // its target into `data`
  list = 3,       // names and facts of a folder, as ListedName records in the content file
  fetch = 4,      // a regular file's contents into the content file; the result is a Fetched. `arguments[0]`: a Wanted
  read_live = 5,  // `arguments[0]`: offset; contents into `data`
  read = 6,       // of a regular file, `arguments[0]`: offset, `arguments[1]`: how much at most; contents into `data`
};

// What copies are made of stays in the sandbox's memory, so that only a share of it goes to copies of files that can be
// read part by part as well.
enum Wanted : std::uint64_t { kAny = 0, kWhole = 1 };
enum Fetched : std::int64_t { kThere = 0, kInParts = 1 };

struct Facts {
  std::uint64_t number, size, blocks, rdev, device;
  std::uint32_t mode, uid, gid, links;
  std::int64_t access_s, modify_s, change_s;
  std::uint32_t access_ns, modify_ns, change_ns, padding;
};

// The text of a program or library with its system calls patched, as the content cache has it; offsets of contents.
struct PatchedText {
  std::uint64_t source, size;  // what it stands for; no size: there is none
  std::uint64_t distance;      // from the first byte of the trampolines to the text, once mapped
  std::uint64_t offset, trampoline_size;
};

// One name of a folder; `size` of the name's bytes follow, and zeros up to a multiple of 8.
struct ListedName {
  Facts facts;
  std::uint32_t name_size;
  std::uint32_t padding;
};

struct Request {
  static constexpr std::uint32_t kPathSize = 4096;
  static constexpr std::uint32_t kDataSize = 0x1'0000;
  enum State : std::uint32_t { kFree, kTaken, kPosted, kDone };
  std::atomic<std::uint32_t> state;  // futex: the guest waits on it
  Operation operation;
  std::uint64_t arguments[4];
  std::int64_t result;  // -errno, or a count
  std::uint64_t offset, size, image_id;
  PatchedText text;
  Facts facts;
  char path[kPathSize];
  std::uint8_t data[kDataSize];
};
inline constexpr std::uint32_t kRequests = 8;

// What the sandbox is to be; written by its init before the first guest process starts.
struct Boot {
  static constexpr std::uint32_t kFilterMost = 256;
  static constexpr std::uint32_t kTextSize = 0x1'0000;
  std::uint32_t uid, gid;
  std::uint64_t tmp_bytes, tmp_inodes, memory_bytes, open_files, tasks, file_size;  // file_size 0: no limit
  std::uint32_t cpus;                                                               // how many are seen inside
  std::uint32_t is_terminal;                                                        // the standard streams are one
  std::uint32_t trace;                                                              // print system calls to stderr
  std::uint32_t own_folders;  // how many of the texts below are writable folders
  std::uint32_t exec_paths;   // how many are programs to try, in order
  std::uint32_t mounts;       // how many are places of the caller's below /tmp
  std::uint32_t links;        // how many pairs are links to be made there
  std::uint32_t filter_rows;
  // NUL-terminated, one after the other: the home folder, the working folder, the writable folders, the places of
  // mounts, the links with their targets, the programs.
  char texts[kTextSize];
  sock_filter filter[kFilterMost];  // what comes after the test for the kernel's own text
};

// How it ended; `kind` is set last.
struct End {
  enum Kind : std::uint32_t { kRunning, kExited, kSignalled, kExecFailed, kStopped };
  std::atomic<std::uint32_t> kind;      // futex: the broker waits on it
  std::int32_t code;                    // exit status, signal or errno
  std::uint64_t tmp_bytes, tmp_inodes;  // in use in the writable space
  std::uint32_t tmp_was_full;           // some write found no room, or no file could be made
  std::uint32_t tmp_inodes_were_full;
  std::uint32_t tasks_peak;     // the most tasks at once
  std::uint32_t task_refusals;  // at Boot::tasks
  std::uint32_t file_refusals;  // at Boot::file_size
  char why[256];                // of kStopped
};

struct Shared {
  Boot boot;
  End end;
  std::atomic<std::uint32_t> doorbell;  // futex: counts posted requests
  std::atomic<std::uint32_t> broker_waits;
  std::atomic<std::uint32_t> guest_bell;  // futex: counts what the broker did to a stream, and changes of `window`
  std::atomic<std::uint32_t> window;      // of the caller's terminal: rows * 65536 + columns
  Stream streams[kStreams];
  Request requests[kRequests];
};
static_assert(sizeof(Shared) <= kRingsSize);

}  // namespace belljar::kernel::shm

namespace belljar::kernel {

inline shm::Shared& shared_with_broker() {
  return *reinterpret_cast<shm::Shared*>(kArenaBase + kRingsOffset);
}

}  // namespace belljar::kernel
