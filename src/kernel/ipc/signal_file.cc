#include "kernel/ipc/signal_file.h"

#include <poll.h>
#include <sys/signalfd.h>

#include "kernel/task/signals.h"

namespace belljar::kernel {
namespace {

signalfd_siginfo to_told(const siginfo_t& info) {
  signalfd_siginfo told{};
  told.ssi_signo = static_cast<std::uint32_t>(info.si_signo);
  told.ssi_errno = info.si_errno;
  told.ssi_code = info.si_code;
  if (info.si_signo == SIGCHLD) {
    told.ssi_pid = static_cast<std::uint32_t>(info.si_pid);
    told.ssi_uid = info.si_uid;
    told.ssi_status = info.si_status;
    told.ssi_utime = static_cast<std::uint64_t>(info.si_utime);
    told.ssi_stime = static_cast<std::uint64_t>(info.si_stime);
  } else if (info.si_code == SI_TIMER) {
    told.ssi_tid = static_cast<std::uint32_t>(info.si_timerid);
    told.ssi_overrun = static_cast<std::uint32_t>(info.si_overrun);
    told.ssi_int = info.si_int;
    told.ssi_ptr = reinterpret_cast<std::uint64_t>(info.si_ptr);
  } else if (info.si_code <= 0) {
    told.ssi_pid = static_cast<std::uint32_t>(info.si_pid);
    told.ssi_uid = info.si_uid;
    told.ssi_int = info.si_int;
    told.ssi_ptr = reinterpret_cast<std::uint64_t>(info.si_ptr);
  } else if ((kFaultSignals & signal_bit(info.si_signo)) != 0) {
    told.ssi_addr = reinterpret_cast<std::uint64_t>(info.si_addr);
  }
  return told;
}

}  // namespace

SignalFile::~SignalFile() {
  while (Watch* const watch = first_) {
    first_ = watch->next;
    watch->process->signal_events.remove(*watch);
    delete_object(watch);
  }
}

void SignalFile::set_wanted(SignalSet wanted) {
  wanted_.store(wanted);
  queue_.wake_all();
}

WaitQueue* SignalFile::queue() {
  Process& own = current_process();
  LockGuard guard(lock_);
  for (Watch* watch = first_; watch != nullptr; watch = watch->next) {
    if (watch->process.get() == &own) return &queue_;
  }
  Watch* const watch = make_object<Watch>(*this, Ref<Process>::of(&own));
  // Without one a wait ends with the signal's own wake-up of a thread, or with its time.
  if (watch == nullptr) return &queue_;
  watch->next = first_;
  first_ = watch;
  own.signal_events.add(*watch);
  return &queue_;
}

siginfo_t SignalFile::take() {
  LockGuard guard(tasks_lock());
  return take_signal(current(), wanted_.load());
}

SysResult<std::uint64_t> SignalFile::read(Buffers& to, std::uint64_t*) {
  if (to.left() < sizeof(signalfd_siginfo)) return error(EINVAL);
  siginfo_t info = take();
  if (info.si_signo == 0) {
    if (is_nonblocking()) return error(EAGAIN);
    Waiting waiting(*queue(), POLLIN);
    while (true) {
      info = take();
      if (info.si_signo != 0) break;
      TRY_VOID(waiting.sleep());
    }
  }
  std::uint64_t moved = 0;
  while (info.si_signo != 0) {
    const signalfd_siginfo told = to_told(info);
    TRY_VOID(to.put(&told, sizeof told));
    moved += sizeof told;
    if (to.left() < sizeof told) break;
    info = take();
  }
  return moved;
}

Events SignalFile::ready() {
  LockGuard guard(tasks_lock());
  return (pending_signals(current()) & wanted_.load()) != 0 ? POLLIN | POLLRDNORM : 0;
}

SignalFile* signal_file_of(File& file) {
  return file.kind() == FileKind::signalfd ? &static_cast<SignalFile&>(file) : nullptr;
}

}  // namespace belljar::kernel
