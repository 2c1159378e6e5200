// What the machine is: uname(2), sysinfo(2), getcpu(2).
#include <linux/sysinfo.h>
#include <linux/utsname.h>

#include <string_view>

#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/task/memory_use.h"
#include "kernel/task/sandbox_facts.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

template <std::size_t size>
void set_text(char (&to)[size], std::string_view text) {
  __builtin_memcpy(to, text.data(), text.size() < size ? text.size() : size - 1);
}

// The CPU that this code runs on: Linux keeps it in the limit of a segment, for the vDSO's getcpu.
std::uint32_t read_cpu() {
  constexpr std::uint32_t kCpuNodeSegment = 0x7b;
  std::uint32_t limit = 0;
  asm volatile("lsl %1, %0" : "=r"(limit) : "r"(kCpuNodeSegment) : "cc");
  return limit & 0xfff;
}

}  // namespace

SyscallResult sys_uname(const SyscallArguments& arguments) {
  new_utsname names{};
  set_text(names.sysname, kSystemName);
  set_text(names.nodename, sandbox_facts().host_name);
  set_text(names.release, kRelease);
  set_text(names.version, kVersion);
  set_text(names.machine, kMachine);
  set_text(names.domainname, kDomainName);
  TRY_VOID(copy_out(arguments.get<UserAddress>(0), names));
  return 0;
}

SyscallResult sys_sysinfo(const SyscallArguments& arguments) {
  const MemoryUse use = memory_use();
  struct sysinfo info{};
  info.uptime = static_cast<long>((now_ns() - sandbox_facts().started_ns) / kNanosecondsPerSecond);
  info.totalram = use.total_bytes;
  info.freeram = use.free_bytes;
  info.sharedram = use.shared_bytes;
  info.procs = static_cast<std::uint16_t>(count_tasks());
  info.mem_unit = 1;
  TRY_VOID(copy_out(arguments.get<UserAddress>(0), info));
  return 0;
}

// As many CPUs are shown as the quota covers; the host may run the task on more.
SyscallResult sys_getcpu(const SyscallArguments& arguments) {
  const std::uint32_t cpu = read_cpu() % sandbox_facts().cpu_count;
  if (const auto to = arguments.get<UserAddress>(0)) TRY_VOID(copy_out(to, cpu));
  if (const auto to = arguments.get<UserAddress>(1)) TRY_VOID(copy_out(to, std::uint32_t{0}));
  return 0;
}

}  // namespace belljar::kernel
