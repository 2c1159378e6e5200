// /proc/PID: what the kernel itself knows of a process or a thread (proc(5)).
#include <algorithm>
#include <cstring>

#include "kernel/fs/proc.h"
#include "kernel/task/memory_use.h"
#include "kernel/task/sandbox_facts.h"
#include "kernel/time/clocks.h"
#include "kernel/time/cpu_times.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kTick = kNanosecondsPerSecond / 100;  // USER_HZ

char state_of(const Process& process, const Task& task) {
  if (process.state == ProcessState::zombie) return 'Z';
  if (process.state == ProcessState::stopped) return 'T';
  return &task != &current() && task.is_sleeping.load() != 0 ? 'S' : 'R';
}

std::string_view state_name(char state) {
  switch (state) {
    case 'Z':
      return "Z (zombie)";
    case 'T':
      return "T (stopped)";
    case 'S':
      return "S (sleeping)";
    default:
      return "R (running)";
  }
}

std::string_view name_of(const Task& task) {
  return task.name;
}

Pid parent_of(const Process& process) {
  return process.parent == nullptr ? 0 : process.parent->pid;
}

struct SignalSets {
  SignalSet ignored = 0;
  SignalSet caught = 0;
};

SignalSets sets_of(const Process& process) {
  SignalSets sets;
  if (!process.actions) return sets;
  for (int signal = 1; signal < NSIG; ++signal) {
    const std::uint64_t handler = process.actions->actions[signal].handler;
    if (handler == reinterpret_cast<std::uint64_t>(SIG_IGN)) {
      sets.ignored |= signal_bit(signal);
    } else if (handler != reinterpret_cast<std::uint64_t>(SIG_DFL)) {
      sets.caught |= signal_bit(signal);
    }
  }
  return sets;
}

void write_stat(const Subject& subject, const Process& process, const Task& task, LongText& to) {
  const bool is_thread = subject.thread != 0;
  const CpuTimes times = is_thread ? cpu_times_of(task) : cpu_times_of(process);
  const SignalSets sets = sets_of(process);
  const std::uint64_t start =
      process.start_ns > sandbox_facts().started_ns ? process.start_ns - sandbox_facts().started_ns : 0;
  const auto number = [&](std::uint64_t value) -> LongText& { return (to << ' ').number(value); };
  const auto zeros = [&](int count) {
    for (int i = 0; i < count; ++i) to << " 0";
  };
  to.decimal(is_thread ? task.tid : process.pid) << " (" << name_of(task) << ") " << state_of(process, task);
  number(static_cast<std::uint64_t>(parent_of(process)));
  number(static_cast<std::uint64_t>(group_id_of(process)));
  number(static_cast<std::uint64_t>(session_id_of(process)));
  to << " 0 -1 4194304";  // tty_nr, tpgid, flags
  zeros(4);               // page faults
  number(times.user_ns / kTick);
  number(times.system_ns / kTick);
  number(process.dead_children.user_ns / kTick);
  number(process.dead_children.system_ns / kTick);
  (to << ' ').decimal(20 + task.settings.nice);
  (to << ' ').decimal(task.settings.nice);
  number(process.task_count);
  zeros(1);
  number(start / kTick);
  number(process.mapped_bytes);
  number(process.memory_bytes / 4096);
  number(process.limits[RLIMIT_RSS].rlim_cur);
  zeros(5);  // addresses of code and stack
  number(task.pending.set & 0x7fff'ffff);
  number(task.blocked.load() & 0x7fff'ffff);
  number(sets.ignored & 0x7fff'ffff);
  number(sets.caught & 0x7fff'ffff);
  zeros(3);
  number(static_cast<std::uint64_t>(is_thread ? -1 : process.exit_signal));
  zeros(2);
  number(static_cast<std::uint64_t>(task.settings.policy));
  zeros(6);
  number(process.arguments_begin);
  number(process.arguments_end);
  number(process.environment_begin);
  number(process.environment_end);
  number(static_cast<std::uint64_t>(process.wait_status)) << '\n';
}

void write_ids(LongText& to, std::string_view name, const std::uint32_t (&ids)[4]) {
  to << name << ':';
  for (const std::uint32_t id : ids) (to << '\t').number(id);
  to << '\n';
}

void write_set(LongText& to, std::string_view name, std::uint64_t set) {
  (to << name << ":\t").hex(set, 16) << '\n';
}

void write_count(LongText& to, std::string_view name, std::uint64_t value) {
  (to << name << ":\t").number(value) << '\n';
}

void write_kibibytes(LongText& to, std::string_view name, std::uint64_t bytes) {
  (to << name << ":\t").column(bytes / 1024, 8) << " kB\n";
}

void write_identity(const Process& process, const Task& task, LongText& to) {
  const Credentials& who = task.credentials;
  to << "Name:\t" << name_of(task) << '\n';
  (to << "Umask:\t").octal(task.fs ? task.fs->umask : 0, 4) << '\n';
  to << "State:\t" << state_name(state_of(process, task)) << '\n';
  write_count(to, "Tgid", static_cast<std::uint64_t>(process.pid));
  write_count(to, "Ngid", 0);
  write_count(to, "Pid", static_cast<std::uint64_t>(task.tid));
  write_count(to, "PPid", static_cast<std::uint64_t>(parent_of(process)));
  write_count(to, "TracerPid", 0);
  write_ids(to, "Uid", {who.uid, who.euid, who.suid, who.fsuid});
  write_ids(to, "Gid", {who.gid, who.egid, who.sgid, who.fsgid});
  write_count(to, "FDSize", 64);
  to << "Groups:\t";
  for (std::uint32_t i = 0; i < who.group_count; ++i) to.number(who.groups[i]) << ' ';
  to << '\n';
  write_count(to, "NStgid", static_cast<std::uint64_t>(process.pid));
  write_count(to, "NSpid", static_cast<std::uint64_t>(task.tid));
  write_count(to, "NSpgid", static_cast<std::uint64_t>(group_id_of(process)));
  write_count(to, "NSsid", static_cast<std::uint64_t>(session_id_of(process)));
}

void write_memory(const Process& process, LongText& to) {
  write_kibibytes(to, "VmPeak", std::max<std::uint64_t>(process.mapped_bytes, memory_peak_of(process)));
  write_kibibytes(to, "VmSize", process.mapped_bytes);
  for (const std::string_view name : {"VmLck", "VmPin"}) write_kibibytes(to, name, 0);
  write_kibibytes(to, "VmHWM", memory_peak_of(process));
  for (const std::string_view name : {"VmRSS", "RssAnon"}) write_kibibytes(to, name, process.memory_bytes);
  for (const std::string_view name : {"RssFile", "RssShmem"}) write_kibibytes(to, name, 0);
  write_kibibytes(to, "VmData", process.memory_bytes);
  for (const std::string_view name : {"VmStk", "VmExe", "VmLib", "VmPTE", "VmSwap", "HugetlbPages"})
    write_kibibytes(to, name, 0);
}

void write_signals(const Process& process, const Task& task, LongText& to) {
  const SignalSets sets = sets_of(process);
  to << "SigQ:\t0/";
  to.number(std::min<std::uint64_t>(process.limits[RLIMIT_SIGPENDING].rlim_cur, 1024)) << '\n';
  write_set(to, "SigPnd", task.pending.set);
  write_set(to, "ShdPnd", process.pending.set);
  write_set(to, "SigBlk", task.blocked.load());
  write_set(to, "SigIgn", sets.ignored);
  write_set(to, "SigCgt", sets.caught);
}

// "0-3", and the same as bits in groups of 32.
void write_cpus(LongText& to) {
  const std::uint32_t count = sandbox_facts().cpu_count;
  to << "Cpus_allowed:\t";
  const std::uint32_t words = (count + 31) / 32;
  for (std::uint32_t word = words; word > 0; --word) {
    const std::uint32_t left = count - (word - 1) * 32;
    to.hex(left >= 32 ? 0xffff'ffffU : (1U << left) - 1, words == 1 ? 1 : 8) << (word > 1 ? "," : "\n");
  }
  to << "Cpus_allowed_list:\t0";
  if (count > 1) (to << '-').number(count - 1);
  to << "\nMems_allowed:\t1\nMems_allowed_list:\t0\n";
}

struct LimitName {
  int resource;
  std::string_view name, unit;
};
constexpr LimitName kLimits[] = {
    {RLIMIT_CPU, "Max cpu time", "seconds"},         {RLIMIT_FSIZE, "Max file size", "bytes"},
    {RLIMIT_DATA, "Max data size", "bytes"},         {RLIMIT_STACK, "Max stack size", "bytes"},
    {RLIMIT_CORE, "Max core file size", "bytes"},    {RLIMIT_RSS, "Max resident set", "bytes"},
    {RLIMIT_NPROC, "Max processes", "processes"},    {RLIMIT_NOFILE, "Max open files", "files"},
    {RLIMIT_MEMLOCK, "Max locked memory", "bytes"},  {RLIMIT_AS, "Max address space", "bytes"},
    {RLIMIT_LOCKS, "Max file locks", "locks"},       {RLIMIT_SIGPENDING, "Max pending signals", "signals"},
    {RLIMIT_MSGQUEUE, "Max msgqueue size", "bytes"}, {RLIMIT_NICE, "Max nice priority", ""},
    {RLIMIT_RTPRIO, "Max realtime priority", ""},    {RLIMIT_RTTIME, "Max realtime timeout", "us"},
};

void write_limit(LongText& to, rlim_t value, std::size_t line, std::size_t width) {
  if (value == RLIM_INFINITY) {
    to << "unlimited";
  } else {
    to.number(value);
  }
  to.pad(line, width);
}

}  // namespace

SysResult<void> proc_stat(const Subject& subject, LongText& to) {
  return tell_of_task(subject,
                      [&](const Process& process, const Task& task) { write_stat(subject, process, task, to); });
}

SysResult<void> proc_status(const Subject& subject, LongText& to) {
  return tell_of_task(subject, [&](const Process& process, const Task& task) {
    write_identity(process, task, to);
    if (process.state != ProcessState::zombie) write_memory(process, to);
    to << "CoreDumping:\t0\nTHP_enabled:\t1\n";
    write_count(to, "Threads", process.task_count);
    write_signals(process, task, to);
    for (const std::string_view name : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) write_set(to, name, 0);
    to << "NoNewPrivs:\t1\nSeccomp:\t0\nSeccomp_filters:\t0\nSpeculation_Store_Bypass:\tvulnerable\n";
    write_cpus(to);
    to << "voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n";
  });
}

SysResult<void> proc_limits(const Subject& subject, LongText& to) {
  return tell_of_task(subject, [&](const Process& process, const Task&) {
    to << "Limit                     Soft Limit           Hard Limit           Units     \n";
    for (const LimitName& limit : kLimits) {
      const std::size_t line = to.size();
      to << limit.name;
      to.pad(line, 26);
      write_limit(to, process.limits[limit.resource].rlim_cur, line, 47);
      write_limit(to, process.limits[limit.resource].rlim_max, line, 68);
      to << limit.unit;
      to.pad(line, 78) << '\n';
    }
  });
}

SysResult<void> proc_io(const Subject& subject, LongText& to) {
  return tell_of_task(subject, [&](const Process&, const Task&) {
    for (const std::string_view name :
         {"rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"}) {
      to << name << ": 0\n";
    }
  });
}

SysResult<void> proc_comm(const Subject& subject, LongText& to) {
  return tell_of_task(subject, [&](const Process&, const Task& task) { to << name_of(task) << '\n'; });
}

SysResult<void> proc_set_comm(const Subject& subject, std::string_view text) {
  bool is_own = false;
  TRY_VOID(tell_of_task(subject, [&](const Process& process, Task& task) {
    is_own = &process == &current_process();
    if (!is_own) return;
    if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
    const std::size_t size = std::min(text.size(), sizeof task.name - 1);
    std::memset(task.name, 0, sizeof task.name);
    std::memcpy(task.name, text.data(), size);
  }));
  if (!is_own) return error(EINVAL);
  return {};
}

SysResult<void> proc_sched(const Subject& subject, LongText& to) {
  return tell_of_task(subject, [&](const Process& process, const Task& task) {
    (to << name_of(task) << " (").decimal(task.tid) << ", #threads: ";
    to.number(process.task_count) << ")\n";
    (to << "policy : ").number(static_cast<std::uint64_t>(task.settings.policy)) << '\n';
  });
}

SysResult<void> proc_oom_score_adj(const Subject& subject, LongText& to) {
  return tell_of_task(subject,
                      [&](const Process& process, const Task&) { to.decimal(process.oom_score_adjustment) << '\n'; });
}

// Anyone may make a process likelier to be chosen; without a right nobody may make it less likely.
SysResult<void> proc_set_oom_score_adj(const Subject& subject, std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const bool is_negative = !text.empty() && text.front() == '-';
  if (is_negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 4) return error(EINVAL);
  int value = 0;
  for (const char character : text) {
    if (character < '0' || character > '9') return error(EINVAL);
    value = value * 10 + (character - '0');
  }
  if (value > 1000) return error(EINVAL);
  if (is_negative) value = -value;
  bool is_allowed = false;
  TRY_VOID(tell_of_task(subject, [&](Process& process, const Task&) {
    is_allowed = value >= process.oom_score_adjustment;
    if (is_allowed) process.oom_score_adjustment = value;
  }));
  if (!is_allowed) return error(EACCES);
  return {};
}

}  // namespace belljar::kernel
