// A table of file descriptors; shared by threads, and by whoever was cloned with CLONE_FILES.
#pragma once

#include <cstdint>

#include "kernel/arena/lock.h"
#include "kernel/arena/ref.h"
#include "kernel/base/result.h"
#include "kernel/fs/file.h"

namespace belljar::kernel {

enum class CloseOnExec : bool { no, yes };

class FdTable final : public Counted {
 public:
  ~FdTable() override;

  // EBADF where there is none, and for one opened with O_PATH.
  SysResult<Ref<File>> get(int fd);
  // Those opened with O_PATH too: for what only needs the place, or the descriptor (dup(2), fstat(2), sendmsg(2)).
  SysResult<Ref<File>> get_any(int fd);
  // The lowest free descriptor, not below `lowest`. EMFILE at the limit (RLIMIT_NOFILE).
  SysResult<int> add(Ref<File> file, CloseOnExec close_on_exec, int lowest = 0);
  // Replaces what is there (dup2(2)).
  SysResult<void> set(int fd, Ref<File> file, CloseOnExec close_on_exec);
  SysResult<void> close(int fd);
  // close_range(2); `only_mark`: sets close-on-exec instead.
  void close_range(std::uint32_t first, std::uint32_t last, bool only_mark);
  void close_on_exec();
  SysResult<bool> closes_on_exec(int fd);
  SysResult<void> set_closes_on_exec(int fd, CloseOnExec value);
  // A copy with references to the same files, for fork(2).
  SysResult<Ref<FdTable>> copy();
  // The lowest descriptor in use at or above `fd`; -1: none. For /proc/self/fd.
  int next_used(int fd);

  void set_limit(std::uint32_t limit) { limit_ = limit; }

 private:
  struct Entry {
    File* file;
    bool close_on_exec;
  };
  SysResult<void> grow(std::uint32_t size);
  Entry* find(int fd) {
    const auto index = static_cast<std::uint32_t>(fd);
    return index < size_ && entries_[index].file != nullptr ? &entries_[index] : nullptr;
  }

  Lock lock_{LockRank::fd_table};
  Entry* entries_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t lowest_free_ = 0;  // nothing below is free
  std::uint32_t limit_ = 1024;
};

}  // namespace belljar::kernel
