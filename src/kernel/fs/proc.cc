#include "kernel/fs/proc.h"

#include <linux/magic.h>

#include "kernel/task/sandbox_facts.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kFile = S_IFREG | 0444;
constexpr std::uint32_t kOwnFile = S_IFREG | 0400;
constexpr std::uint32_t kWritable = S_IFREG | 0644;
constexpr std::uint32_t kFolder = S_IFDIR | 0555;
constexpr std::uint32_t kOwnFolder = S_IFDIR | 0500;
constexpr std::uint32_t kLink = S_IFLNK | 0777;

constexpr std::string_view kFilesystems =
    "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tdevtmpfs\nnodev\tpipefs\nnodev\tsockfs\nnodev\tdevpts\n";
constexpr std::string_view kNetDevices =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
    "compressed\n"
    "    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0   "
    "       "
    "0\n";
constexpr std::string_view kTcpSockets =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
constexpr std::string_view kUnixSockets = "Num       RefCount Protocol Flags    Type St Inode Path\n";
constexpr std::string_view kRoutes =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

// clang-format off
#define PROCESS_ROWS(folder)                                                                                     \
  {folder "/cmdline", kFile, proc_cmdline},                                                                      \
  {folder "/comm", kWritable, proc_comm, {}, nullptr, proc_set_comm},                                            \
  {folder "/stat", kFile, proc_stat},                                                                            \
  {folder "/status", kFile, proc_status},                                                                        \
  {folder "/statm", kFile, proc_statm},                                                                          \
  {folder "/maps", kFile, proc_maps},                                                                            \
  {folder "/smaps", kFile, proc_smaps},                                                                          \
  {folder "/smaps_rollup", kFile, proc_smaps_rollup},                                                            \
  {folder "/environ", kOwnFile, proc_environ},                                                                   \
  {folder "/auxv", kOwnFile, proc_auxv},                                                                         \
  {folder "/exe", kLink, proc_exe, {}, proc_exe_place},                                                          \
  {folder "/cwd", kLink, proc_cwd, {}, proc_cwd_place},                                                          \
  {folder "/root", kLink, proc_root, {}, proc_root_place},                                                       \
  {folder "/fd", kOwnFolder},                                                                                    \
  {folder "/fd/[fd]", S_IFLNK | 0700, proc_fd, {}, proc_fd_place},                                               \
  {folder "/fdinfo", kOwnFolder},                                                                                \
  {folder "/fdinfo/[fd]", kOwnFile, proc_fdinfo},                                                                \
  {folder "/limits", kFile, proc_limits},                                                                        \
  {folder "/mounts", kFile, proc_mounts},                                                                        \
  {folder "/mountinfo", kFile, proc_mountinfo},                                                                  \
  {folder "/io", kOwnFile, proc_io},                                                                             \
  {folder "/sched", kFile, proc_sched},                                                                          \
  {folder "/schedstat", kFile, nullptr, "0 0 0\n"},                                                              \
  {folder "/wchan", kFile, nullptr, "0"},                                                                        \
  {folder "/cgroup", kFile, nullptr, "0::/\n"},                                                                  \
  {folder "/cpuset", kFile, nullptr, "/\n"},                                                                     \
  {folder "/loginuid", kFile, nullptr, "4294967295"},                                                            \
  {folder "/sessionid", kFile, nullptr, "4294967295"},                                                           \
  {folder "/oom_score", kFile, nullptr, "666\n"},                                                                \
  {folder "/oom_score_adj", kWritable, proc_oom_score_adj, {}, nullptr, proc_set_oom_score_adj},                 \
  {folder "/uid_map", kFile, nullptr, "         0          0 4294967295\n"},                                     \
  {folder "/gid_map", kFile, nullptr, "         0          0 4294967295\n"},                                     \
  {folder "/setgroups", kFile, nullptr, "deny\n"},                                                               \
  {folder "/ns/cgroup", kLink, nullptr, "cgroup:[4026531835]"},                                                  \
  {folder "/ns/ipc", kLink, nullptr, "ipc:[4026531839]"},                                                        \
  {folder "/ns/mnt", kLink, nullptr, "mnt:[4026531840]"},                                                        \
  {folder "/ns/net", kLink, nullptr, "net:[4026531992]"},                                                        \
  {folder "/ns/pid", kLink, nullptr, "pid:[4026531836]"},                                                        \
  {folder "/ns/user", kLink, nullptr, "user:[4026531837]"},                                                      \
  {folder "/ns/uts", kLink, nullptr, "uts:[4026531838]"},                                                        \
  {folder "/net/dev", kFile, nullptr, kNetDevices},                                                              \
  {folder "/net/route", kFile, nullptr, kRoutes},                                                                \
  {folder "/net/tcp", kFile, nullptr, kTcpSockets},                                                              \
  {folder "/net/tcp6", kFile, nullptr, kTcpSockets},                                                             \
  {folder "/net/udp", kFile, nullptr, kTcpSockets},                                                              \
  {folder "/net/udp6", kFile, nullptr, kTcpSockets},                                                             \
  {folder "/net/unix", kFile, nullptr, kUnixSockets},                                                            \
  {folder "/net/if_inet6", kFile, nullptr, ""}

constexpr GeneratedRow kRows[] = {
    PROCESS_ROWS("[pid]"),
    {"[pid]/task", kFolder},
    PROCESS_ROWS("[pid]/task/[tid]"),
    {"self", kLink, proc_self},
    {"thread-self", kLink, proc_thread_self},
    {"belljar/arena", kFile, proc_arena},
    {"cgroups", kFile, nullptr, "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"},
    {"cmdline", kFile, nullptr, "belljar\n"},
    {"cpuinfo", kFile, proc_cpuinfo},
    {"devices", kFile, nullptr, "Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/console\n  5 /dev/ptmx\n136 pts\n\nBlock devices:\n"},
    {"diskstats", kFile, nullptr, ""},
    {"filesystems", kFile, nullptr, kFilesystems},
    {"interrupts", kFile, nullptr, ""},
    {"loadavg", kFile, proc_loadavg},
    {"meminfo", kFile, proc_meminfo},
    {"modules", kFile, nullptr, ""},
    {"mounts", kLink, nullptr, "self/mounts"},
    {"net", kLink, nullptr, "self/net"},
    {"partitions", kFile, nullptr, "major minor  #blocks  name\n\n"},
    {"stat", kFile, proc_system_stat},
    {"swaps", kFile, nullptr, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"},
    {"uptime", kFile, proc_uptime},
    {"version", kFile, proc_version},
    {"vmstat", kFile, nullptr, "nr_free_pages 0\npgpgin 0\npgpgout 0\npswpin 0\npswpout 0\npgfault 0\npgmajfault 0\n"},
    {"sys/fs/aio-max-nr", kWritable, nullptr, "65536\n"},
    {"sys/fs/aio-nr", kFile, nullptr, "0\n"},
    {"sys/fs/epoll/max_user_watches", kWritable, nullptr, "1000000\n"},
    {"sys/fs/file-max", kWritable, nullptr, "9223372036854775807\n"},
    {"sys/fs/file-nr", kFile, nullptr, "1024\t0\t9223372036854775807\n"},
    {"sys/fs/inotify/max_queued_events", kWritable, nullptr, "16384\n"},
    {"sys/fs/inotify/max_user_instances", kWritable, nullptr, "128\n"},
    {"sys/fs/inotify/max_user_watches", kWritable, nullptr, "65536\n"},
    {"sys/fs/mqueue/msg_default", kWritable, nullptr, "10\n"},
    {"sys/fs/mqueue/msg_max", kWritable, nullptr, "10\n"},
    {"sys/fs/mqueue/msgsize_default", kWritable, nullptr, "8192\n"},
    {"sys/fs/mqueue/msgsize_max", kWritable, nullptr, "8192\n"},
    {"sys/fs/mqueue/queues_max", kWritable, nullptr, "256\n"},
    {"sys/fs/nr_open", kWritable, nullptr, "1048576\n"},
    {"sys/fs/pipe-max-size", kWritable, nullptr, "1048576\n"},
    {"sys/fs/protected_hardlinks", S_IFREG | 0600, nullptr, "1\n"},
    {"sys/fs/protected_symlinks", S_IFREG | 0600, nullptr, "1\n"},
    {"sys/kernel/cap_last_cap", kFile, nullptr, "40\n"},
    {"sys/kernel/core_pattern", kWritable, nullptr, "core\n"},
    {"sys/kernel/core_uses_pid", kWritable, nullptr, "0\n"},
    {"sys/kernel/domainname", kWritable, nullptr, "(none)\n"},
    {"sys/kernel/hostname", kWritable, proc_host_name},
    {"sys/kernel/msgmax", kWritable, nullptr, "8192\n"},
    {"sys/kernel/msgmnb", kWritable, nullptr, "16384\n"},
    {"sys/kernel/msgmni", kWritable, nullptr, "32000\n"},
    {"sys/kernel/ngroups_max", kFile, nullptr, "65536\n"},
    {"sys/kernel/osrelease", kFile, [](const Subject&, LongText& to) { to << kRelease << '\n'; return SysResult<void>(); }},
    {"sys/kernel/ostype", kFile, nullptr, "Linux\n"},
    {"sys/kernel/overflowgid", kWritable, nullptr, "65534\n"},
    {"sys/kernel/overflowuid", kWritable, nullptr, "65534\n"},
    {"sys/kernel/perf_event_paranoid", kWritable, nullptr, "4\n"},
    {"sys/kernel/pid_max", kWritable, proc_pid_max},
    {"sys/kernel/random/boot_id", kFile, proc_boot_id},
    {"sys/kernel/random/entropy_avail", kFile, nullptr, "256\n"},
    {"sys/kernel/random/poolsize", kFile, nullptr, "256\n"},
    {"sys/kernel/random/uuid", kFile, proc_uuid},
    {"sys/kernel/randomize_va_space", kWritable, nullptr, "2\n"},
    {"sys/kernel/sched_rr_timeslice_ms", kWritable, nullptr, "100\n"},
    {"sys/kernel/seccomp/actions_avail", kFile, nullptr, "\n"},
    {"sys/kernel/sem", kWritable, nullptr, "32000\t1024000000\t500\t32000\n"},
    {"sys/kernel/shmall", kWritable, nullptr, "18446744073692774399\n"},
    {"sys/kernel/shmmax", kWritable, nullptr, "18446744073692774399\n"},
    {"sys/kernel/shmmni", kWritable, nullptr, "4096\n"},
    {"sys/kernel/threads-max", kWritable, proc_threads_max},
    {"sys/kernel/version", kFile, [](const Subject&, LongText& to) { to << kVersion << '\n'; return SysResult<void>(); }},
    {"sys/net/core/somaxconn", kWritable, nullptr, "4096\n"},
    {"sys/net/ipv4/ip_local_port_range", kWritable, nullptr, "32768\t60999\n"},
    {"sys/net/unix/max_dgram_qlen", kWritable, nullptr, "512\n"},
    {"sys/vm/max_map_count", kWritable, nullptr, "65530\n"},
    {"sys/vm/mmap_min_addr", kWritable, nullptr, "65536\n"},
    {"sys/vm/overcommit_memory", kWritable, nullptr, "0\n"},
    {"sys/vm/overcommit_ratio", kWritable, nullptr, "50\n"},
    {"sys/vm/swappiness", kWritable, nullptr, "60\n"},
};
// clang-format on
#undef PROCESS_ROWS

bool enter_process(Subject& subject, std::uint32_t number) {
  const LockGuard guard(tasks_lock());
  subject.process = static_cast<Pid>(number);
  return find_process(subject.process) != nullptr;
}

std::int64_t next_process_number(const Subject&, std::uint32_t at) {
  const LockGuard guard(tasks_lock());
  const Process* const process = next_process(static_cast<Pid>(at) - 1);
  return process == nullptr ? -1 : process->pid;
}

bool enter_thread(Subject& subject, std::uint32_t number) {
  const LockGuard guard(tasks_lock());
  subject.thread = static_cast<Pid>(number);
  const Task* const task = find_task(subject.thread);
  return task != nullptr && task->process->pid == subject.process;
}

std::int64_t next_thread_number(const Subject& subject, std::uint32_t at) {
  const LockGuard guard(tasks_lock());
  const Process* const process = find_process(subject.process);
  std::int64_t lowest = -1;
  if (process == nullptr) return lowest;
  for (const Task* task = process->first_task; task != nullptr; task = task->next_in_process) {
    if (task->tid >= static_cast<Pid>(at) && (lowest < 0 || task->tid < lowest)) lowest = task->tid;
  }
  return lowest;
}

constexpr NumberedPart kNumbered[] = {
    {"[pid]", enter_process, next_process_number},
    {"[tid]", enter_thread, next_thread_number},
    {"[fd]", enter_fd, next_fd},
};

// Files of a process are its user's; those of the machine are root's.
Owner owner_of(const Subject& subject) {
  Owner owner{0, 0};
  if (subject.process == 0) return owner;
  const auto told = tell_of_task(
      subject, [&](const Process&, const Task& task) { owner = {task.credentials.euid, task.credentials.egid}; });
  return told ? owner : Owner{0, 0};
}

constexpr GeneratedTree kTree{
    .rows = kRows, .magic = PROC_SUPER_MAGIC, .device = 20, .numbered = kNumbered, .owner = owner_of};

}  // namespace

SysResult<Ref<Inode>> make_proc_file_system(HostTree* host) {
  set_proc_host(host);
  return make_generated_file_system(kTree);
}

}  // namespace belljar::kernel
