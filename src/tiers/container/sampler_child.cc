#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tiers/container/init_steps_child.h"

namespace belljar::container {
namespace {

constexpr std::uint64_t kSampleIntervalMs = 10;
// The exact measure of memory walks page tables; it gets at most a fifth of the time.
constexpr std::uint64_t kExactMeasureRest = 4;

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

enum class Reading { done, gone, hidden };

// Reads a small file of /proc whole.
Reading read_text(int folder_fd, const char* name, char* buffer, std::size_t size) {
  const int fd = ::openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES || errno == EPERM ? Reading::hidden : Reading::gone;
  const ssize_t count = ::read(fd, buffer, size - 1);
  ::close(fd);
  buffer[std::max<ssize_t>(count, 0)] = '\0';
  return count > 0 ? Reading::done : Reading::gone;
}

// The number in the line that begins with `key`. Only there: the first line of a status holds the name that the program
// gave itself, which may look like a key (its newlines are shown escaped, proc(5)).
std::uint64_t number_line(const char* text, const char* key) {
  const std::size_t length = std::strlen(key);
  for (const char* line = text; line != nullptr; line = std::strchr(line, '\n')) {
    if (*line == '\n') ++line;
    if (std::strncmp(line, key, length) == 0) return read_number(line + length);
  }
  return 0;
}

std::uint64_t kib_line(const char* text, const char* key) {
  return number_line(text, key) * 1024;
}

std::uint64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

// What stat(5) tells of a process: times in ticks of 10 ms, the start in ticks since boot.
struct ProcessTimes {
  std::uint64_t own_ms = 0;     // utime and stime, fields 14 and 15
  std::uint64_t reaped_ms = 0;  // cutime and cstime, fields 16 and 17
  std::uint64_t start = 0;      // field 22
};

ProcessTimes parse_times(const char* stat) {
  ProcessTimes times;
  const char* position = std::strrchr(stat, ')');
  for (int field = 3; position != nullptr && field <= 22; ++field) {
    position = std::strchr(position + 1, ' ');
    if (position == nullptr) break;
    if (field == 14 || field == 15) times.own_ms += read_number(position + 1) * 10;
    if (field == 16 || field == 17) times.reaped_ms += read_number(position + 1) * 10;
    if (field == 22) times.start = read_number(position + 1);
  }
  return times;
}

// Bytes of System V segments that no process has attached: fields 7 (nattch) and 15 (rss) of each line but the first.
std::uint64_t detached_segment_bytes(int proc_fd) {
  char buffer[16384];
  if (read_text(proc_fd, "sysvipc/shm", buffer, sizeof buffer) != Reading::done) return 0;
  std::uint64_t bytes = 0;
  const char* line = std::strchr(buffer, '\n');
  while (line != nullptr && line[1] != '\0') {
    const char* position = line + 1;
    std::uint64_t attached = 0;
    std::uint64_t resident = 0;
    for (int field = 1; field <= 15; ++field) {
      while (*position == ' ') ++position;
      if (field == 7) attached = read_number(position);
      if (field == 15) resident = read_number(position);
      while (*position != ' ' && *position != '\n' && *position != '\0') ++position;
    }
    if (attached == 0) bytes += resident;
    line = std::strchr(position, '\n');
  }
  return bytes;
}

std::uint64_t writable_space_bytes() {
  struct statfs space{};
  if (::statfs("/tmp", &space) != 0) return 0;
  return (space.f_blocks - space.f_bfree) * static_cast<std::uint64_t>(space.f_bsize);
}

}  // namespace

Sampler::Sampler(const SampledLimits& limits, SeenByInit* shared)
    : limits_(limits), shared_(shared), last_ms_(now_ms()) {
  if (is_needed()) proc_fd_ = ::open("/proc", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
}

bool Sampler::is_due() const {
  return now_ms() - last_ms_ >= kSampleIntervalMs;
}

template <typename Visit>
void Sampler::for_each_process(Visit visit) {
  alignas(DirectoryEntry) char entries[8192];
  ::lseek(proc_fd_, 0, SEEK_SET);
  while (true) {
    const long count = ::syscall(SYS_getdents64, proc_fd_, entries, sizeof entries);
    if (count <= 0) return;
    for (long offset = 0; offset < count;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + offset);
      offset += entry->length;
      if (entry->name[0] < '0' || entry->name[0] > '9') continue;
      const int folder = ::openat(proc_fd_, entry->name, O_PATH | O_CLOEXEC);
      if (folder < 0) continue;
      visit(read_number(entry->name), folder);
      ::close(folder);
    }
  }
}

// Time that ended processes used is found in two ways, each of which misses some: in their parents' cutime, unless
// those ignore SIGCHLD; and by what each was seen to have used, which misses what came after the last look. The larger
// counts. /proc lists processes by rising number, so the last look's list is walked beside it.
void Sampler::add_times(std::uint64_t pid, const char* stat, std::uint64_t* totals_ms) {
  const ProcessTimes times = parse_times(stat);
  *totals_ms += times.own_ms + times.reaped_ms;
  while (next_before_ < before_.count && before_.processes[next_before_].pid < pid) ++next_before_;
  std::uint64_t known_ms = 0;
  if (next_before_ < before_.count) {
    const Seen& seen = before_.processes[next_before_];
    if (seen.pid == pid && seen.start == times.start) known_ms = std::min(seen.own_ms, times.own_ms);
  }
  if (now_.count == now_.processes.size()) return;
  watched_ms_ += times.own_ms - known_ms;
  now_.processes[now_.count++] = {pid, times.start, times.own_ms};
}

// An upper bound: pages that several processes have are counted for each of them.
Sampler::Totals Sampler::add_up() {
  Totals totals;
  std::uint64_t times_ms = 0;
  before_ = now_;
  now_.count = 0;
  next_before_ = 0;
  for_each_process([&](std::uint64_t pid, int folder) {
    char buffer[4096];
    if (read_text(folder, "status", buffer, sizeof buffer) == Reading::done) {
      const std::uint64_t tables = kib_line(buffer, "VmPTE:");
      totals.memory_bytes +=
          kib_line(buffer, "RssAnon:") + kib_line(buffer, "RssShmem:") + tables + kib_line(buffer, "VmSwap:");
      totals.table_bytes += tables;
      if (pid != 1) totals.tasks += number_line(buffer, "Threads:");
    }
    if (read_text(folder, "stat", buffer, sizeof buffer) == Reading::done) add_times(pid, buffer, &times_ms);
  });
  totals.memory_bytes += writable_space_bytes() + detached_segment_bytes(proc_fd_);
  totals.cpu_ms = std::max(times_ms, watched_ms_);
  return totals;
}

// Each page once, whoever has it. A process that hides its maps is counted with all that it has.
std::uint64_t Sampler::measure_memory() {
  std::uint64_t own = 0;
  std::uint64_t shared = 0;
  for_each_process([&](std::uint64_t, int folder) {
    char buffer[4096];
    if (read_text(folder, "status", buffer, sizeof buffer) != Reading::done) return;
    const std::uint64_t tables = kib_line(buffer, "VmPTE:");
    const std::uint64_t anonymous = kib_line(buffer, "RssAnon:") + kib_line(buffer, "VmSwap:");
    const std::uint64_t of_files = kib_line(buffer, "RssShmem:");
    const Reading maps = read_text(folder, "smaps_rollup", buffer, sizeof buffer);
    if (maps == Reading::gone) return;
    const bool is_shown = maps == Reading::done;
    own += tables + (is_shown ? kib_line(buffer, "Pss_Anon:") + kib_line(buffer, "SwapPss:") : anonymous);
    shared += is_shown ? kib_line(buffer, "Pss_Shmem:") : of_files;
  });
  // Files of the writable space that are mapped are in both.
  return own + std::max(shared, writable_space_bytes()) + detached_segment_bytes(proc_fd_);
}

// A second look makes sure: a vfork shows its parent's memory twice for a moment.
bool Sampler::memory_is_exceeded(const Totals& totals) {
  if (totals.memory_bytes <= limits_.memory_bytes) {
    shared_->memory_peak_bytes = std::max<std::uint64_t>(shared_->memory_peak_bytes, totals.memory_bytes);
    looks_over_limit_ = 0;
    return false;
  }
  // Page tables belong to one process alone, so their sum is exact; and the more there are of them, the longer the
  // exact measure walks them, while the program makes more.
  if (totals.table_bytes > limits_.memory_bytes) {
    shared_->memory_peak_bytes = std::max<std::uint64_t>(shared_->memory_peak_bytes, totals.table_bytes);
    return ++looks_over_limit_ >= 2;
  }
  const std::uint64_t start_ms = now_ms();
  if (start_ms < next_measure_ms_) return false;
  const std::uint64_t measured = measure_memory();
  const std::uint64_t end_ms = now_ms();
  next_measure_ms_ = end_ms + kExactMeasureRest * (end_ms - start_ms);
  shared_->memory_peak_bytes = std::max<std::uint64_t>(shared_->memory_peak_bytes, measured);
  looks_over_limit_ = measured > limits_.memory_bytes ? looks_over_limit_ + 1 : 0;
  return looks_over_limit_ >= 2;
}

// The whole tree but init is stopped while it owes time. kill(2): -1 is everything this process may signal, and in this
// pid namespace that is the sandbox.
void Sampler::hold_quota(std::uint64_t cpu_ms, std::uint64_t passed_ms) {
  const std::uint64_t allowed_us = passed_ms * limits_.millicpus;
  const std::uint64_t used_us = (std::max(cpu_ms, last_cpu_ms_) - last_cpu_ms_) * 1000;
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
  const std::uint64_t start_ms = now_ms();
  const Totals totals = add_up();
  shared_->cpu_ms = std::max<std::uint64_t>(shared_->cpu_ms, totals.cpu_ms);
  shared_->tasks_peak = std::max<std::uint64_t>(shared_->tasks_peak, totals.tasks);
  if (limits_.memory_bytes > 0 && memory_is_exceeded(totals)) return Verdict::memory_exceeded;
  if (limits_.millicpus > 0) hold_quota(totals.cpu_ms, start_ms - last_ms_);
  last_ms_ = start_ms;
  return Verdict::within;
}

}  // namespace belljar::container
