#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tiers/container/init_steps_child.h"

namespace belljar::container {
namespace {

struct DirectoryEntry {  // getdents64(2)
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[];
};

std::uint64_t read_number(const char* text) {
  std::uint64_t number = 0;
  while (*text == ' ' || *text == '\t') ++text;
  for (; *text >= '0' && *text <= '9'; ++text) number = number * 10 + static_cast<std::uint64_t>(*text - '0');
  return number;
}

// Reads a small file of /proc whole; returns false when it is gone.
bool read_text(int folder_fd, const char* name, char* buffer, std::size_t size) {
  const int fd = ::openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t count = ::read(fd, buffer, size - 1);
  ::close(fd);
  buffer[std::max<ssize_t>(count, 0)] = '\0';
  return count > 0;
}

std::uint64_t status_bytes(const char* status, const char* key) {
  const char* line = std::strstr(status, key);
  return line == nullptr ? 0 : read_number(line + std::strlen(key)) * 1024;
}

std::uint64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

// utime, stime, cutime and cstime: fields 14 to 17 of stat(5), in ticks of 10 ms.
std::uint64_t stat_cpu_ms(const char* stat) {
  const char* position = std::strrchr(stat, ')');
  std::uint64_t ticks = 0;
  for (int field = 2; position != nullptr && field < 17; ++field) {
    position = std::strchr(position + 1, ' ');
    if (position != nullptr && field >= 13) ticks += read_number(position + 1);
  }
  return ticks * 10;
}

}  // namespace

Sampler::Sampler(const SampledLimits& limits, SampledTotals* shared)
    : limits_(limits), shared_(shared), last_ms_(now_ms()) {
  if (is_needed()) proc_fd_ = ::open("/proc", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
}

// Anonymous memory is added up. Shared memory is seen by every process that maps it, so of that the largest share
// counts.
void Sampler::add_process(const char* pid, Totals* totals, std::uint64_t* shared_max) {
  char buffer[4096];
  const int folder = ::openat(proc_fd_, pid, O_PATH | O_CLOEXEC);
  if (folder < 0) return;
  if (read_text(folder, "status", buffer, sizeof buffer)) {
    totals->memory_bytes += status_bytes(buffer, "RssAnon:");
    *shared_max = std::max(*shared_max, status_bytes(buffer, "RssShmem:"));
  }
  if (read_text(folder, "stat", buffer, sizeof buffer)) totals->cpu_ms += stat_cpu_ms(buffer);
  ::close(folder);
}

Sampler::Totals Sampler::add_up() {
  Totals totals;
  std::uint64_t shared_max = 0;
  alignas(DirectoryEntry) char entries[8192];
  ::lseek(proc_fd_, 0, SEEK_SET);
  while (true) {
    const long count = ::syscall(SYS_getdents64, proc_fd_, entries, sizeof entries);
    if (count <= 0) break;
    for (long offset = 0; offset < count;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + offset);
      if (entry->name[0] >= '0' && entry->name[0] <= '9') add_process(entry->name, &totals, &shared_max);
      offset += entry->length;
    }
  }
  struct statfs space{};
  std::uint64_t files = 0;
  if (::statfs("/tmp", &space) == 0)
    files = (space.f_blocks - space.f_bfree) * static_cast<std::uint64_t>(space.f_bsize);
  totals.memory_bytes += std::max(shared_max, files);
  return totals;
}

// The whole tree but init is stopped while it owes time. kill(2): -1 is everything this process may signal, and in this
// pid namespace that is the sandbox.
void Sampler::hold_quota(std::uint64_t cpu_ms) {
  const std::uint64_t now = now_ms();
  const std::uint64_t allowed_us = (now - last_ms_) * limits_.millicpus;
  const std::uint64_t used_us = (std::max(cpu_ms, last_cpu_ms_) - last_cpu_ms_) * 1000;
  last_ms_ = now;
  last_cpu_ms_ = std::max(cpu_ms, last_cpu_ms_);
  debt_us_ = debt_us_ + used_us > allowed_us ? debt_us_ + used_us - allowed_us : 0;
  const std::uint64_t tolerance_us = 20 * limits_.millicpus;  // 20 ms of quota: what the ticks of stat(5) can't tell
  const bool must_stop = debt_us_ > (is_stopped_ ? 0 : tolerance_us);
  if (must_stop) {
    ::kill(-1, SIGSTOP);  // each time: children forked while the signal went round are still running
  } else if (is_stopped_) {
    ::kill(-1, SIGCONT);
  }
  is_stopped_ = must_stop;
}

Sampler::Verdict Sampler::sample() {
  const Totals totals = add_up();
  shared_->memory_peak_bytes = std::max<std::uint64_t>(shared_->memory_peak_bytes, totals.memory_bytes);
  shared_->cpu_ms = std::max<std::uint64_t>(shared_->cpu_ms, totals.cpu_ms);
  if (limits_.memory_bytes > 0 && totals.memory_bytes > limits_.memory_bytes) return Verdict::memory_exceeded;
  if (limits_.millicpus > 0) hold_quota(totals.cpu_ms);
  return Verdict::within;
}

}  // namespace belljar::container
