#include "kernel/fs/sys.h"

#include <linux/magic.h>

#include "kernel/task/memory_use.h"
#include "kernel/task/process.h"
#include "kernel/task/sandbox_facts.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kFile = S_IFREG | 0444;
constexpr std::uint32_t kWritable = S_IFREG | 0644;
constexpr std::uint32_t kFolder = S_IFDIR | 0755;

// "0", "0-3"
SysResult<void> cpu_list(const Subject&, LongText& to) {
  to << '0';
  if (const std::uint32_t count = sandbox_facts().cpu_count; count > 1) (to << '-').number(count - 1);
  to << '\n';
  return {};
}

SysResult<void> own_cpu(const Subject& subject, LongText& to) {
  to.decimal(subject.number) << '\n';
  return {};
}

SysResult<void> memory_max(const Subject&, LongText& to) {
  to.number(sandbox_facts().memory_bytes) << '\n';
  return {};
}

SysResult<void> memory_current(const Subject&, LongText& to) {
  const MemoryUse use = memory_use();
  to.number(use.total_bytes - use.free_bytes) << '\n';
  return {};
}

SysResult<void> cpu_max(const Subject&, LongText& to) {
  constexpr std::uint64_t kPeriod = 100'000;
  to.number(sandbox_facts().cpu_count * kPeriod) << ' ';
  to.number(kPeriod) << '\n';
  return {};
}

SysResult<void> tasks_max(const Subject&, LongText& to) {
  to.number(sandbox_facts().tasks_max) << '\n';
  return {};
}

SysResult<void> tasks_current(const Subject&, LongText& to) {
  to.number(count_tasks()) << '\n';
  return {};
}

constexpr GeneratedRow kRows[] = {
    {.path = "block", .mode = kFolder},
    {.path = "bus", .mode = kFolder},
    {.path = "class", .mode = kFolder},
    {.path = "devices/system/cpu/isolated", .mode = kFile, .constant = "\n"},
    {.path = "devices/system/cpu/kernel_max", .mode = kFile, .constant = "8191\n"},
    {.path = "devices/system/cpu/offline", .mode = kFile, .constant = "\n"},
    {.path = "devices/system/cpu/online", .mode = kFile, .text = cpu_list},
    {.path = "devices/system/cpu/possible", .mode = kFile, .text = cpu_list},
    {.path = "devices/system/cpu/present", .mode = kFile, .text = cpu_list},
    {.path = "devices/system/cpu/cpu[n]/topology/core_cpus_list", .mode = kFile, .text = own_cpu},
    {.path = "devices/system/cpu/cpu[n]/topology/core_id", .mode = kFile, .text = own_cpu},
    {.path = "devices/system/cpu/cpu[n]/topology/core_siblings_list", .mode = kFile, .text = cpu_list},
    {.path = "devices/system/cpu/cpu[n]/topology/physical_package_id", .mode = kFile, .constant = "0\n"},
    {.path = "devices/system/cpu/cpu[n]/topology/thread_siblings_list", .mode = kFile, .text = own_cpu},
    {.path = "devices/system/node/node0/cpulist", .mode = kFile, .text = cpu_list},
    {.path = "devices/system/node/online", .mode = kFile, .constant = "0\n"},
    {.path = "devices/system/node/possible", .mode = kFile, .constant = "0\n"},
    {.path = "fs/cgroup/cgroup.controllers", .mode = kFile, .constant = "cpu memory pids\n"},
    {.path = "fs/cgroup/cpu.max", .mode = kWritable, .text = cpu_max},
    {.path = "fs/cgroup/cpuset.cpus.effective", .mode = kFile, .text = cpu_list},
    {.path = "fs/cgroup/memory.current", .mode = kFile, .text = memory_current},
    {.path = "fs/cgroup/memory.high", .mode = kWritable, .constant = "max\n"},
    {.path = "fs/cgroup/memory.max", .mode = kWritable, .text = memory_max},
    {.path = "fs/cgroup/memory.swap.max", .mode = kWritable, .constant = "0\n"},
    {.path = "fs/cgroup/pids.current", .mode = kFile, .text = tasks_current},
    {.path = "fs/cgroup/pids.max", .mode = kWritable, .text = tasks_max},
    {.path = "kernel/mm/transparent_hugepage/defrag",
     .mode = kWritable,
     .constant = "always defer defer+madvise [madvise] never\n"},
    {.path = "kernel/mm/transparent_hugepage/enabled", .mode = kWritable, .constant = "always [madvise] never\n"},
    {.path = "kernel/mm/transparent_hugepage/hpage_pmd_size", .mode = kFile, .constant = "2097152\n"},
};

bool enter_cpu(Subject& subject, std::uint32_t number) {
  subject.number = static_cast<int>(number);
  return number < sandbox_facts().cpu_count;
}

std::int64_t next_cpu(const Subject&, std::uint32_t at) {
  return at < sandbox_facts().cpu_count ? static_cast<std::int64_t>(at) : -1;
}

constexpr NumberedPart kNumbered[] = {{"cpu[n]", enter_cpu, next_cpu}};

constexpr GeneratedTree kTree{.rows = kRows, .magic = SYSFS_MAGIC, .device = 22, .numbered = kNumbered};

}  // namespace

SysResult<Ref<Inode>> make_sys_file_system() {
  return make_generated_file_system(kTree);
}

}  // namespace belljar::kernel
