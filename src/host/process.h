// Creating and owning processes by pidfd. clone(2), pidfd_open(2), waitid(2).
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace belljar::host {

struct ExitRecord {
  int code;      // si_code: CLD_EXITED, CLD_KILLED or CLD_DUMPED
  int status;    // exit status or signal number
  rusage usage;  // of the process and its reaped descendants
};

// What a process, and those of its descendants that were waited for, moved by read(2), write(2) and their family.
struct IoCounters {
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
};

// rchar and wchar in the text of proc_pid_io(5). Allocates nothing: for use between clone and exec too.
std::optional<IoCounters> parse_io(std::string_view text);

// `whole` without `part`, which may have been read a moment later.
IoCounters io_without(const IoCounters& whole, const IoCounters& part);

// A child process of this one. Its destructor kills and reaps it. Move-only.
class [[nodiscard]] Process {
 public:
  Process() = default;
  Process(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { kill_and_reap(); }

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }    // readable (poll) once the process has ended
  bool is_running() const { return pid_ > 0; }  // not reaped yet

  // Sends SIGKILL. Harmless when the process has ended.
  void kill() const;

  // Sends SIGCONT, which nothing that is stopped can put off. As harmless.
  void go_on() const;

  // Waits for the end and reaps. Call once.
  SysResult<ExitRecord> reap();

  // Gives up ownership: the process is neither killed nor reaped.
  void release() { pid_ = -1; }

 private:
  void kill_and_reap();

  pid_t pid_ = -1;
  Fd pidfd_;
};

enum class Side { parent, child };

struct CloneResult {
  Side side;
  Process process;  // on the parent's side
};

// clone3(2) as fork(2) does it, with the given CLONE_NEW* flags, a pidfd, and, for `cgroup_fd` >= 0, the child placed
// in that cgroup v2 folder. Runs no atfork handlers: the child must call async-signal-safe functions only.
SysResult<CloneResult> clone_process(std::uint64_t flags, int cgroup_fd);

}  // namespace belljar::host
