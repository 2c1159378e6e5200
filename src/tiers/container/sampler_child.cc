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
// Of milliseconds that were begun: at least 20 ms of rest.
constexpr std::uint64_t kNamelessRest = 20;

std::uint64_t read_number(const char* text) {
  std::uint64_t number = 0;
  while (*text == ' ' || *text == '\t') ++text;
  for (; *text >= '0' && *text <= '9'; ++text) number = number * 10 + static_cast<std::uint64_t>(*text - '0');
  return number;
}

// A file of /proc, line by line. What is past the buffer's size in one line is left out: the groups of a caller who is
// in many, for one.
class Lines {
 public:
  Lines(int folder_fd, const char* name) : fd_(::openat(folder_fd, name, O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) error_ = errno;
  }
  ~Lines() {
    if (fd_ >= 0) ::close(fd_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Null after the last line, and where nothing can be read.
  const char* next();
  // 0, or the errno of what failed.
  int error() const { return error_; }

 private:
  bool fill();

  int fd_;
  int error_ = 0;
  std::size_t used_ = 0;  // of the buffer, by the line that was given out
  std::size_t filled_ = 0;
  bool is_rest_of_line_ = false;
  char buffer_[4096];
};

// False at the end of the file.
bool Lines::fill() {
  std::memmove(buffer_, buffer_ + used_, filled_ - used_);
  filled_ -= used_;
  used_ = 0;
  const ssize_t count = ::read(fd_, buffer_ + filled_, sizeof buffer_ - 1 - filled_);
  if (count < 0) error_ = errno;
  filled_ += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  return count > 0;
}

const char* Lines::next() {
  while (fd_ >= 0) {
    char* const line = buffer_ + used_;
    auto* const end = static_cast<char*>(std::memchr(line, '\n', filled_ - used_));
    if (end == nullptr && (used_ > 0 || filled_ < sizeof buffer_ - 1) && fill()) continue;
    const std::size_t length = end != nullptr ? static_cast<std::size_t>(end - line) : filled_ - used_;
    if (length == 0 && end == nullptr) return nullptr;
    const bool was_rest = is_rest_of_line_;
    is_rest_of_line_ = end == nullptr;
    line[length] = '\0';
    used_ += length + (end != nullptr ? 1 : 0);
    if (!was_rest) return line;
  }
  return nullptr;
}

// The number after `key`, where the line begins with it.
bool read_key(const char* line, const char* key, std::uint64_t* number) {
  const std::size_t length = std::strlen(key);
  if (std::strncmp(line, key, length) != 0) return false;
  *number = read_number(line + length);
  return true;
}

// A process that has ended, or keeps its memory from being read, is no failure; anything else is.
bool is_failure(int error) {
  return error != 0 && error != ENOENT && error != ESRCH && error != EACCES && error != EPERM;
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

// The `wanted`th field of a line whose fields are parted by blanks, from 1; 0 where it is no number.
std::uint64_t number_field(const char* line, int wanted) {
  for (int field = 1; *line != '\0'; ++field) {
    while (*line == ' ') ++line;
    if (field == wanted) return read_number(line);
    while (*line != ' ' && *line != '\0') ++line;
  }
  return 0;
}

// A mapping as a line of maps shows it (proc_pid_maps(5)).
struct Mapping {
  std::uint64_t bytes = 0;
  std::uint64_t inode = 0;
  bool is_nameless_shared = false;  // of mmap(2) with MAP_SHARED and MAP_ANONYMOUS, and of shmat(2)
};

std::uint64_t read_hexadecimal(const char* text) {
  std::uint64_t number = 0;
  for (; *text != '\0'; ++text) {
    const char* const digit = std::strchr("0123456789abcdef", *text);
    if (digit == nullptr) break;
    number = number * 16 + static_cast<std::uint64_t>(digit - "0123456789abcdef");
  }
  return number;
}

Mapping parse_mapping(const char* line) {
  Mapping mapping;
  const char* const end = std::strchr(line, '-');
  const char* const mode = std::strchr(line, ' ');
  if (end == nullptr || mode == nullptr || std::strlen(mode) < 5) return mapping;
  mapping.bytes = read_hexadecimal(end + 1) - read_hexadecimal(line);
  mapping.inode = number_field(line, 5);
  mapping.is_nameless_shared = mode[4] == 's' && (std::strstr(line, " /dev/zero (deleted)") != nullptr ||
                                                  std::strstr(line, " /SYSV") != nullptr);
  return mapping;
}

std::uint64_t writable_space_bytes() {
  struct statfs space{};
  if (::statfs("/tmp", &space) != 0) return 0;
  return (space.f_blocks - space.f_bfree) * static_cast<std::uint64_t>(space.f_bsize);
}

// Calls visit(number, descriptor of its folder) for the entries that are numbers. Returns 0 or an errno.
template <typename Visit>
int for_each_number(int folder_fd, Visit visit) {
  alignas(DirectoryEntry) char entries[8192];
  ::lseek(folder_fd, 0, SEEK_SET);
  while (true) {
    const long count = ::syscall(SYS_getdents64, folder_fd, entries, sizeof entries);
    if (count <= 0) return count < 0 ? errno : 0;
    for (long offset = 0; offset < count;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + offset);
      offset += entry->length;
      if (entry->name[0] < '0' || entry->name[0] > '9') continue;
      const int folder = ::openat(folder_fd, entry->name, O_PATH | O_CLOEXEC);
      if (folder < 0 && is_failure(errno)) return errno;
      if (folder < 0) continue;
      visit(read_number(entry->name), folder);
      ::close(folder);
    }
  }
}

}  // namespace

Sampler::Sampler(const SampledLimits& limits, SeenByInit* shared)
    : limits_(limits), shared_(shared), last_ms_(now_ms()) {
  if (!is_needed()) return;
  proc_fd_ = ::open("/proc", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (proc_fd_ < 0) failure_ = errno;
}

bool Sampler::is_due() const {
  return now_ms() - last_ms_ >= kSampleIntervalMs;
}

void Sampler::note(int error) {
  if (is_failure(error)) failure_ = error;
}

// What status (proc_pid_status(5)) tells. A line counts from its beginning only: the first holds the name that the
// program gave itself, which may look like a key (its newlines are shown escaped).
Sampler::Held Sampler::read_held(int folder_fd) {
  Held held;
  Lines lines(folder_fd, "status");
  while (const char* line = lines.next()) {
    std::uint64_t number = 0;
    if (read_key(line, "Threads:", &number)) held.threads = number;
    if (read_key(line, "VmPTE:", &number)) held.table_bytes = number * 1024;
    if (read_key(line, "RssShmem:", &number)) held.shared_bytes = number * 1024;
    if (read_key(line, "RssAnon:", &number)) {
      held.own_bytes += number * 1024;
      held.is_shown = true;
    }
    if (read_key(line, "VmSwap:", &number)) held.own_bytes += number * 1024;
  }
  note(lines.error());
  return held;
}

// Calls visit(held, folder) for each process that has memory. Where its first thread has ended another one shows it.
template <typename Visit>
void Sampler::for_each_memory(Visit visit) {
  note(for_each_number(proc_fd_, [&](std::uint64_t pid, int folder) {
    Held held = read_held(folder);
    held.pid = pid;
    if (held.is_shown) {
      visit(held, folder);
      return;
    }
    const int threads = ::openat(folder, "task", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    note(threads < 0 ? errno : 0);
    if (threads < 0) return;
    note(for_each_number(threads, [&](std::uint64_t, int thread) {
      if (held.is_shown) return;
      held = read_held(thread);
      held.pid = pid;
      if (held.is_shown) visit(held, thread);
    }));
    ::close(threads);
  }));
}

// Bytes of System V segments that no process has attached: of each line of sysvipc/shm but the first, which names the
// columns, field 7 is nattch and 15 rss.
std::uint64_t Sampler::detached_segment_bytes() {
  Lines lines(proc_fd_, "sysvipc/shm");
  std::uint64_t bytes = 0;
  lines.next();
  while (const char* line = lines.next()) {
    if (number_field(line, 7) == 0) bytes += number_field(line, 15);
  }
  note(lines.error());
  return bytes;
}

// The sizes of the shared mappings that have no file, each once. What was written to one stays when its pages leave the
// resident set (MADV_DONTNEED, a child that ended), and shows nowhere else.
std::uint64_t Sampler::nameless_shared_bytes() {
  std::array<std::uint64_t, 256> inodes{};
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  for_each_memory([&](const Held& held, int folder) {
    if (held.pid == 1) return;  // its plan, shared with the supervisor
    Lines lines(folder, "maps");
    std::uint64_t inode = 0;  // parts of one mapping follow each other
    bool is_counted = false;
    while (const char* line = lines.next()) {
      const Mapping mapping = parse_mapping(line);
      if (!mapping.is_nameless_shared) continue;
      if (mapping.inode != inode) {
        inode = mapping.inode;
        is_counted = std::find(inodes.begin(), inodes.begin() + count, inode) != inodes.begin() + count;
        if (!is_counted && count < inodes.size()) inodes[count++] = inode;
      }
      if (!is_counted) bytes += mapping.bytes;
    }
    note(lines.error());
  });
  return bytes;
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
  std::uint64_t resident_shared = 0;
  for_each_memory([&](const Held& held, int) {
    totals.memory_bytes += held.own_bytes + held.table_bytes;
    resident_shared += held.shared_bytes;
    totals.table_bytes += held.table_bytes;
    if (held.pid != 1) ++totals.processes;
    if (held.pid != 1) totals.tasks += held.threads;
  });
  note(for_each_number(proc_fd_, [&](std::uint64_t pid, int folder) {
    if (pid == 1) return;  // what sampling takes is not the program's
    Lines lines(folder, "stat");
    if (const char* line = lines.next()) add_times(pid, line, &times_ms);
    note(lines.error());
  }));
  look_at_nameless();
  totals.memory_bytes += std::max(resident_shared, writable_space_bytes() + nameless_bytes_) + detached_segment_bytes();
  totals.cpu_ms = std::max(times_ms, watched_ms_);
  return totals;
}

// Reading maps costs more than the rest, so it gets a fraction of the time.
void Sampler::look_at_nameless() {
  const std::uint64_t start_ms = now_ms();
  if (limits_.memory_bytes == 0 || start_ms < next_nameless_ms_) return;
  nameless_bytes_ = nameless_shared_bytes();
  next_nameless_ms_ = now_ms() + kNamelessRest * (now_ms() - start_ms + 1);
}

// Each page once, whoever has it. A process that hides its maps is counted with all that it has.
std::uint64_t Sampler::measure_memory() {
  std::uint64_t own = 0;
  std::uint64_t shared = 0;
  for_each_memory([&](const Held& held, int folder) {
    Lines lines(folder, "smaps_rollup");
    std::uint64_t exact_own = 0;
    std::uint64_t exact_shared = 0;
    bool is_exact = false;
    while (const char* line = lines.next()) {
      std::uint64_t number = 0;
      is_exact |= read_key(line, "Pss_Anon:", &number);
      if (read_key(line, "Pss_Anon:", &number) || read_key(line, "SwapPss:", &number)) exact_own += number * 1024;
      if (read_key(line, "Pss_Shmem:", &number)) exact_shared += number * 1024;
    }
    note(lines.error());
    own += held.table_bytes + (is_exact ? exact_own : held.own_bytes);
    shared += is_exact ? exact_shared : held.shared_bytes;
  });
  // Files of the writable space that are mapped are in both.
  return own + std::max(shared, writable_space_bytes() + nameless_shared_bytes()) + detached_segment_bytes();
}

void Sampler::see_memory(std::uint64_t bytes) {
  shared_->memory_peak_bytes = std::max<std::uint64_t>(shared_->memory_peak_bytes, bytes);
}

// Nothing while it is too early.
std::optional<std::uint64_t> Sampler::measure_when_due() {
  const std::uint64_t start_ms = now_ms();
  if (start_ms < next_measure_ms_) return std::nullopt;
  const std::uint64_t measured = measure_memory();
  const std::uint64_t end_ms = now_ms();
  next_measure_ms_ = end_ms + kExactMeasureRest * (end_ms - start_ms);
  see_memory(measured);
  return measured;
}

// A second look makes sure: a vfork shows its parent's memory twice for a moment.
bool Sampler::memory_is_exceeded(const Totals& totals) {
  if (totals.memory_bytes <= limits_.memory_bytes) {
    looks_over_limit_ = 0;
    if (totals.processes < 2) {
      see_memory(totals.memory_bytes);
    } else if (totals.memory_bytes > shared_->memory_peak_bytes) {
      (void)measure_when_due();  // what is shared since a fork must not count for each
    }
    return false;
  }
  // Page tables belong to one process alone, so their sum is exact; and the more there are of them, the longer the
  // exact measure walks them, while the program makes more.
  if (totals.table_bytes > limits_.memory_bytes) {
    see_memory(totals.table_bytes);
    return ++looks_over_limit_ >= 2;
  }
  const std::optional<std::uint64_t> measured = measure_when_due();
  if (!measured) return false;
  looks_over_limit_ = *measured > limits_.memory_bytes ? looks_over_limit_ + 1 : 0;
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

void Sampler::count_tasks_at_end() {
  if (limits_.tasks == 0) return;
  const std::uint64_t with_program = add_up().tasks + 1;
  shared_->tasks_peak = std::max<std::uint64_t>(shared_->tasks_peak, std::min(with_program, limits_.tasks));
}

Sampler::Verdict Sampler::sample() {
  const std::uint64_t start_ms = now_ms();
  const Totals totals = add_up();
  if (failure_ != 0) return Verdict::blind;
  shared_->cpu_ms = std::max<std::uint64_t>(shared_->cpu_ms, totals.cpu_ms);
  shared_->tasks_peak = std::max<std::uint64_t>(shared_->tasks_peak, totals.tasks);
  if (limits_.memory_bytes > 0 && memory_is_exceeded(totals)) return Verdict::memory_exceeded;
  if (limits_.millicpus > 0) hold_quota(totals.cpu_ms, start_ms - last_ms_);
  last_ms_ = start_ms;
  return Verdict::within;
}

}  // namespace belljar::container
