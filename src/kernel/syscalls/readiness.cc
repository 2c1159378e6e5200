// poll(2), ppoll(2), select(2), pselect6(2).
#include <poll.h>
#include <sys/time.h>
#include <time.h>

#include <algorithm>

#include "kernel/ipc/call_mask.h"
#include "kernel/ipc/polled_files.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

SysResult<Deadline> deadline_at(UserAddress timeout) {
  if (timeout == 0) return kNever;
  const auto time = TRY(copy_in<timespec>(timeout));
  return deadline_after(TRY(to_nanoseconds(time)));
}

std::uint64_t left_until(Deadline deadline) {
  const std::uint64_t now = now_ns();
  return deadline > now ? deadline - now : 0;
}

// What is left of the time goes back to the caller, as far as it can be written.
void tell_time_left(UserAddress timeout, Deadline deadline) {
  if (timeout == 0) return;
  static_cast<void>(copy_out(timeout, to_timespec(left_until(deadline))));
}

SyscallResult poll_descriptors(UserAddress list, std::uint32_t count, Deadline deadline) {
  if (count > current_process().limits[RLIMIT_NOFILE].rlim_cur) return error(EINVAL);
  PolledFiles files(count);
  if (!files.is_valid()) return error(ENOMEM);
  FdTable& table = *current().files;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto entry = TRY(copy_in<pollfd>(list + i * sizeof(pollfd)));
    if (entry.fd < 0) continue;
    SysResult<Ref<File>> file = table.get(entry.fd);
    if (!file) {
      files[i].ready = POLLNVAL;
      continue;
    }
    files[i].file = std::move(*file);
    files[i].wanted = static_cast<std::uint16_t>(entry.events) | POLLERR | POLLHUP;
  }
  const std::uint64_t ready = TRY(poll_files(files.data(), count, deadline));
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto events = static_cast<short>(files[i].ready);
    TRY_VOID(copy_out(list + i * sizeof(pollfd) + offsetof(pollfd, revents), events));
  }
  return ready;
}

// The three sets of select(2), copied in.
class DescriptorSets {
 public:
  static constexpr Events kIn = POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR;
  static constexpr Events kOut = POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR;
  static constexpr Events kExcept = POLLPRI;

  explicit DescriptorSets(std::uint32_t count) : words_((count + 63) / 64) {
    if (words_ * 3 <= kFew) {
      bits_ = few_;
    } else {
      bits_ = static_cast<std::uint64_t*>(heap_allocate(words_ * 3 * sizeof(std::uint64_t)));
    }
  }
  ~DescriptorSets() {
    if (bits_ != few_ && bits_ != nullptr) heap_free(bits_, words_ * 3 * sizeof(std::uint64_t));
  }
  DescriptorSets(const DescriptorSets&) = delete;
  DescriptorSets& operator=(const DescriptorSets&) = delete;

  bool is_valid() const { return bits_ != nullptr; }
  SysResult<void> read(int set, UserAddress from) {
    return from == 0 ? SysResult<void>() : copy_in(words(set), from, words_ * sizeof(std::uint64_t));
  }
  SysResult<void> write(int set, UserAddress to) {
    return to == 0 ? SysResult<void>() : copy_out(to, words(set), words_ * sizeof(std::uint64_t));
  }
  Events wanted(std::uint32_t fd) {
    Events events = 0;
    for (int set = 0; set < 3; ++set) {
      if ((words(set)[fd / 64] >> (fd % 64) & 1) != 0) events |= kEvents[set];
    }
    return events;
  }
  // Leaves the bits of what is ready; returns how many.
  std::uint32_t keep(std::uint32_t fd, Events ready) {
    std::uint32_t count = 0;
    for (int set = 0; set < 3; ++set) {
      const std::uint64_t bit = 1ULL << (fd % 64);
      if ((words(set)[fd / 64] & bit) == 0) continue;
      if ((ready & kEvents[set]) != 0) {
        ++count;
      } else {
        words(set)[fd / 64] &= ~bit;
      }
    }
    return count;
  }
  void clear_beyond(std::uint32_t fd) {
    for (int set = 0; set < 3 && fd % 64 != 0; ++set) words(set)[fd / 64] &= (1ULL << (fd % 64)) - 1;
  }

 private:
  static constexpr Events kEvents[3] = {kIn, kOut, kExcept};
  static constexpr std::size_t kFew = 48;  // 1,024 descriptors
  std::uint64_t* words(int set) { return bits_ + static_cast<std::size_t>(set) * words_; }

  std::size_t words_;
  std::uint64_t few_[kFew] = {};
  std::uint64_t* bits_;
};

SyscallResult select_descriptors(int count, const UserAddress (&addresses)[3], Deadline deadline) {
  if (count < 0) return error(EINVAL);
  // There are no descriptors beyond the limit; Linux cuts the count to its table in the same way.
  const auto fds = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(static_cast<std::uint32_t>(count), current_process().limits[RLIMIT_NOFILE].rlim_cur));
  DescriptorSets sets(fds);
  if (!sets.is_valid()) return error(ENOMEM);
  for (int set = 0; set < 3; ++set) TRY_VOID(sets.read(set, addresses[set]));
  sets.clear_beyond(fds);
  std::size_t used = 0;
  for (std::uint32_t fd = 0; fd < fds; ++fd) used += sets.wanted(fd) != 0;
  PolledFiles files(used);
  if (!files.is_valid()) return error(ENOMEM);
  FdTable& table = *current().files;
  std::size_t index = 0;
  for (std::uint32_t fd = 0; fd < fds; ++fd) {
    const Events wanted = sets.wanted(fd);
    if (wanted == 0) continue;
    files[index].file = TRY(table.get(static_cast<int>(fd)));
    files[index++].wanted = wanted;
  }
  TRY(poll_files(files.data(), used, deadline));
  index = 0;
  std::uint64_t ready = 0;
  for (std::uint32_t fd = 0; fd < fds; ++fd) {
    if (sets.wanted(fd) != 0) ready += sets.keep(fd, files[index++].ready);
  }
  for (int set = 0; set < 3; ++set) TRY_VOID(sets.write(set, addresses[set]));
  return ready;
}

bool was_interrupted(const SyscallResult& result) {
  return !result && value_of(result.error()) == kRestartNoHandler;
}

}  // namespace

SyscallResult sys_poll(const SyscallArguments& arguments) {
  const int timeout_ms = arguments.get<int>(2);
  const Deadline deadline =
      timeout_ms < 0 ? kNever : deadline_after(static_cast<std::uint64_t>(timeout_ms) * 1'000'000);
  return poll_descriptors(arguments.get<UserAddress>(0), arguments.get<std::uint32_t>(1), deadline);
}

SyscallResult sys_ppoll(const SyscallArguments& arguments) {
  const auto timeout = arguments.get<UserAddress>(2);
  const auto mask = arguments.get<UserAddress>(3);
  const Deadline deadline = TRY(deadline_at(timeout));
  TRY_VOID(begin_call_mask(mask, arguments.values[4]));
  const SyscallResult result =
      poll_descriptors(arguments.get<UserAddress>(0), arguments.get<std::uint32_t>(1), deadline);
  end_call_mask(mask, was_interrupted(result));
  tell_time_left(timeout, deadline);
  return result;
}

SyscallResult sys_select(const SyscallArguments& arguments) {
  const auto timeout = arguments.get<UserAddress>(4);
  Deadline deadline = kNever;
  if (timeout != 0) {
    const auto time = TRY(copy_in<timeval>(timeout));
    // select(2) takes more than a second's microseconds.
    if (time.tv_sec < 0 || time.tv_usec < 0) return error(EINVAL);
    const timeval whole{time.tv_sec + time.tv_usec / 1'000'000, time.tv_usec % 1'000'000};
    deadline = deadline_after(TRY(to_nanoseconds(whole)));
  }
  const UserAddress sets[3] = {arguments.values[1], arguments.values[2], arguments.values[3]};
  const SyscallResult result = select_descriptors(arguments.get<int>(0), sets, deadline);
  if (timeout != 0) static_cast<void>(copy_out(timeout, to_timeval(left_until(deadline))));
  return result;
}

SyscallResult sys_pselect6(const SyscallArguments& arguments) {
  const auto timeout = arguments.get<UserAddress>(4);
  const Deadline deadline = TRY(deadline_at(timeout));
  struct {
    UserAddress mask;
    std::uint64_t size;
  } signals{};
  if (arguments.values[5] != 0) TRY_VOID(copy_in(&signals, arguments.values[5], sizeof signals));
  TRY_VOID(begin_call_mask(signals.mask, signals.size));
  const UserAddress sets[3] = {arguments.values[1], arguments.values[2], arguments.values[3]};
  const SyscallResult result = select_descriptors(arguments.get<int>(0), sets, deadline);
  end_call_mask(signals.mask, was_interrupted(result));
  tell_time_left(timeout, deadline);
  return result;
}

}  // namespace belljar::kernel
