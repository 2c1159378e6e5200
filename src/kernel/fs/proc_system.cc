// /proc: the machine that the sandbox is told about.
#include <algorithm>

#include "kernel/arena/random.h"
#include "kernel/arena/roots.h"
#include "kernel/fs/proc.h"
#include "kernel/task/memory_use.h"
#include "kernel/task/sandbox_facts.h"
#include "kernel/time/clocks.h"
#include "kernel/time/cpu_times.h"

namespace belljar::kernel {

class ProcState {
 public:
  HostTree* host = nullptr;
  std::atomic<std::uint64_t> boot_id[2] = {};
};

namespace {

ProcState& state() {
  return root_object(arena_roots().proc);
}

std::uint64_t uptime_ns() {
  return now_ns() - sandbox_facts().started_ns;
}

// Of what belongs to the sandbox since its beginning.
CpuTimes times_of_all() {
  CpuTimes all;
  const LockGuard guard(tasks_lock());
  for (const Process* process = next_process(0); process != nullptr; process = next_process(process->pid)) {
    const CpuTimes times = cpu_times_of(*process);
    all.user_ns += times.user_ns + process->dead_children.user_ns;
    all.system_ns += times.system_ns + process->dead_children.system_ns;
  }
  return all;
}

// The processors' own words, without a call of the host; where the host's /proc can't be asked.
void make_cpuinfo(LongText& to) {
  for (std::uint32_t cpu = 0; cpu < sandbox_facts().cpu_count; ++cpu) {
    (to << "processor\t: ").number(cpu) << "\nvendor_id\t: unknown\nmodel name\t: unknown\nflags\t\t: fpu sse sse2\n\n";
  }
}

void write_kibibytes(LongText& to, std::string_view name, std::uint64_t bytes) {
  const std::size_t line = to.size();
  to << name << ':';
  to.pad(line, 16).column(bytes / 1024, 8) << " kB\n";
}

// Hundredths of a second.
void write_seconds(LongText& to, std::uint64_t nanoseconds) {
  const std::uint64_t part = nanoseconds % kNanosecondsPerSecond / 10'000'000;
  to.number(nanoseconds / kNanosecondsPerSecond) << '.' << (part < 10 ? "0" : "");
  to.number(part);
}

void write_uuid(LongText& to, std::uint64_t high, std::uint64_t low) {
  high = (high & ~0xf000ULL) | 0x4000;       // version 4: random
  low = (low & ~(3ULL << 62)) | 1ULL << 63;  // of RFC 4122
  to.hex(high >> 32, 8) << '-';
  to.hex((high >> 16) & 0xffff, 4) << '-';
  to.hex(high & 0xffff, 4) << '-';
  to.hex(low >> 48, 4) << '-';
  to.hex(low & 0xffff'ffff'ffff, 12) << '\n';
}

}  // namespace

void set_proc_host(HostTree* host) {
  state().host = host;
}

SysResult<void> proc_cpuinfo(const Subject&, LongText& to) {
  constexpr std::size_t kPart = 16384;
  HostTree* const host = state().host;
  while (host != nullptr) {
    char* const into = to.reserve(kPart);
    if (into == nullptr) return error(ENOMEM);
    const auto size = host->read_live("proc/cpuinfo", to.size(), into, kPart);
    if (!size || *size == 0) break;
    to.commit(*size);
  }
  if (to.size() == 0) make_cpuinfo(to);
  return {};
}

SysResult<void> proc_meminfo(const Subject&, LongText& to) {
  const MemoryUse use = memory_use();
  write_kibibytes(to, "MemTotal", use.total_bytes);
  write_kibibytes(to, "MemFree", use.free_bytes);
  write_kibibytes(to, "MemAvailable", use.free_bytes);
  for (const std::string_view name : {"Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree",
                                      "Dirty", "Writeback", "AnonPages", "Mapped"}) {
    write_kibibytes(to, name, 0);
  }
  write_kibibytes(to, "Shmem", use.shared_bytes);
  for (const std::string_view name : {"Slab", "SReclaimable", "SUnreclaim", "KernelStack", "PageTables"})
    write_kibibytes(to, name, 0);
  write_kibibytes(to, "CommitLimit", use.total_bytes);
  write_kibibytes(to, "Committed_AS", use.total_bytes - use.free_bytes);
  to << "VmallocTotal:   34359738367 kB\n";
  for (const std::string_view name : {"VmallocUsed", "VmallocChunk"}) write_kibibytes(to, name, 0);
  to << "HugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\nHugePages_Surp:        0\n";
  to << "Hugepagesize:       2048 kB\n";
  return {};
}

SysResult<void> proc_system_stat(const Subject&, LongText& to) {
  constexpr std::uint64_t kTick = kNanosecondsPerSecond / 100;
  const std::uint32_t count = sandbox_facts().cpu_count;
  const CpuTimes used = times_of_all();
  const std::uint64_t up = uptime_ns();
  const auto write = [&](std::uint64_t user, std::uint64_t system, std::uint64_t all) {
    to.number(user / kTick) << " 0 ";
    to.number(system / kTick) << ' ';
    to.number(all > user + system ? (all - user - system) / kTick : 0) << " 0 0 0 0 0 0\n";
  };
  to << "cpu  ";
  write(used.user_ns, used.system_ns, up * count);
  for (std::uint32_t cpu = 0; cpu < count; ++cpu) {
    (to << "cpu").number(cpu) << ' ';
    write(used.user_ns / count, used.system_ns / count, up);
  }
  const std::uint64_t now = TRY(read_clock(CLOCK_REALTIME));
  (to << "intr 0\nctxt 0\nbtime ").number((now - up) / kNanosecondsPerSecond);
  (to << "\nprocesses ").number(count_tasks()) << "\nprocs_running 1\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n";
  return {};
}

SysResult<void> proc_uptime(const Subject&, LongText& to) {
  const std::uint64_t up = uptime_ns();
  const CpuTimes used = times_of_all();
  const std::uint64_t all = up * sandbox_facts().cpu_count;
  const std::uint64_t busy = used.user_ns + used.system_ns;
  write_seconds(to, up);
  to << ' ';
  write_seconds(to, all > busy ? all - busy : 0);
  to << '\n';
  return {};
}

SysResult<void> proc_loadavg(const Subject&, LongText& to) {
  (to << "0.00 0.00 0.00 1/").number(count_tasks()) << ' ';
  to.decimal(current_process().pid) << '\n';
  return {};
}

SysResult<void> proc_version(const Subject&, LongText& to) {
  to << kSystemName << " version " << kRelease << ' ' << kVersion << '\n';
  return {};
}

SysResult<void> proc_host_name(const Subject&, LongText& to) {
  to << std::string_view(sandbox_facts().host_name) << '\n';
  return {};
}

SysResult<void> proc_threads_max(const Subject&, LongText& to) {
  to.number(sandbox_facts().tasks_max) << '\n';
  return {};
}

SysResult<void> proc_pid_max(const Subject&, LongText& to) {
  to.number(kPidMax) << '\n';
  return {};
}

SysResult<void> proc_uuid(const Subject&, LongText& to) {
  std::uint64_t words[2];
  fill_random(words, sizeof words);
  write_uuid(to, words[0], words[1]);
  return {};
}

// Random, and the same as long as the sandbox lives: whoever asks first sets it.
SysResult<void> proc_boot_id(const Subject&, LongText& to) {
  std::uint64_t words[2];
  fill_random(words, sizeof words);
  for (int i = 0; i < 2; ++i) {
    std::uint64_t none = 0;
    if (!state().boot_id[i].compare_exchange_strong(none, words[i])) words[i] = none;
  }
  write_uuid(to, words[0], words[1]);
  return {};
}

}  // namespace belljar::kernel
