// Locks in shared memory. Ranked: a thread takes them in rising order only (checked in the hosted build). A process
// that dies holding one ends the sandbox.
#pragma once

#include <atomic>
#include <cstdint>

namespace belljar::kernel {

enum class LockRank : std::uint8_t {
  generated = 0,   // the position in a file of /proc, whose contents are made under locks of any other rank
  tasks = 1,       // the process tree, pids, sessions, signals
  fd_table = 2,    // one for each table of descriptors
  memory = 3,      // areas of one address space
  tree = 4,        // names: dentries, mounts, and what changes a folder
  rights = 5,      // files under way in messages of sockets
  object = 6,      // one inode's contents, one pipe, one socket. At most one of them at a time, but for `pair`
  pair = 7,        // the second of two objects
  ready_list = 8,  // of an epoll instance
  queue = 9,       // a WaitQueue; from the queue of a watched file to the one of the epoll instance, and so on up
  timers = 10,
  file_data = 11,  // the allocator of file data
  broker = 12,     // slots of the broker's ring
  heap = 13,
};

class Lock {
 public:
  explicit constexpr Lock(LockRank rank) : rank_(rank) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock();
  void unlock();
  // The host's thread id of the holder; 0: nobody.
  std::uint32_t holder() const { return word_.load(std::memory_order_relaxed) & ~kContended; }

 private:
  static constexpr std::uint32_t kContended = 0x8000'0000;
  void lock_contended(std::uint32_t own);

  std::atomic<std::uint32_t> word_ = 0;  // the holder's thread id, and kContended where others wait (futex(2))
  LockRank rank_;
};

class [[nodiscard]] LockGuard {
 public:
  explicit LockGuard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace belljar::kernel
