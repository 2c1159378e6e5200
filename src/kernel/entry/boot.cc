// The first guest process, from the host's execve(2) of the image to the guest's first instruction.
#include "kernel/entry/boot.h"

#include <elf.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>

#include "kernel/arena/layout.h"
#include "kernel/arena/roots.h"
#include "kernel/broker/rings_shm.h"
#include "kernel/entry/host_signals.h"
#include "kernel/entry/stop.h"
#include "kernel/entry/thread_state.h"
#include "kernel/host/calls.h"
#include "kernel/host/raw.h"
#include "kernel/host/vdso.h"
#include "kernel/task/first.h"

extern "C" {
extern char kernel_text_begin[], kernel_text_end[];
void syscall_entry();
void cpuid_entry();
[[noreturn]] void move_to_stack(std::uint64_t stack, void (*next)());
}

namespace belljar::kernel {
namespace {

HostFacts facts;

void map_shared_files() {
  constexpr int kFlags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  if (host::mmap(kArenaBase, kArenaSize, PROT_READ | PROT_WRITE, kFlags, kArenaFd, 0) < 0) host::exit_group(120);
  if (host::mmap(kContentBase, kContentSize, PROT_READ, kFlags, kContentFd, 0) < 0) host::exit_group(121);
  const long cache = host::mmap(kCacheBase, kContentSize, PROT_READ, kFlags, kCacheFd, 0);
  if (cache < 0 && cache != -EBADF) host::exit_group(121);
  // Nothing else may come to lie in the kernel's range.
  host::mmap(kPrivateBase, kPrivateSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

void read_host_facts(const std::uint64_t* stack) {
  facts.argument_count = stack[0];
  facts.arguments = reinterpret_cast<const char* const*>(stack + 1);
  facts.environment = facts.arguments + facts.argument_count + 1;
  const char* const* after = facts.environment;
  while (*after != nullptr) ++after;
  for (const auto* entry = reinterpret_cast<const Elf64_auxv_t*>(after + 1); entry->a_type != AT_NULL; ++entry) {
    const std::uint64_t value = entry->a_un.a_val;
    if (entry->a_type == AT_SYSINFO_EHDR) host::find_vdso(value);
    if (entry->a_type == AT_HWCAP) facts.hwcap = value;
    if (entry->a_type == AT_HWCAP2) facts.hwcap2 = value;
    if (entry->a_type == AT_MINSIGSTKSZ) facts.signal_stack_min = value;
    if (entry->a_type == AT_RANDOM)
      __builtin_memcpy(facts.random, reinterpret_cast<const void*>(value), sizeof facts.random);
  }
}

// Calls from outside the kernel's text trap; of those from inside, the rows of the profile decide
// (docs/kernel-tier.md).
void install_filter() {
  const auto begin = reinterpret_cast<std::uint64_t>(kernel_text_begin);
  const auto end = reinterpret_cast<std::uint64_t>(kernel_text_end);
  constexpr std::uint32_t kHigh = offsetof(seccomp_data, instruction_pointer) + 4;
  constexpr std::uint32_t kLow = offsetof(seccomp_data, instruction_pointer);
  const sock_filter prefix[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kHigh),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(begin >> 32), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kLow),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, static_cast<std::uint32_t>(begin), 0, 1),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, static_cast<std::uint32_t>(end), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
  };
  constexpr std::uint32_t kPrefix = sizeof prefix / sizeof prefix[0];
  static sock_filter rows[kPrefix + shm::Boot::kFilterMost];
  const shm::Boot& boot = shared_with_broker().boot;
  __builtin_memcpy(rows, prefix, sizeof prefix);
  __builtin_memcpy(rows + kPrefix, boot.filter, boot.filter_rows * sizeof(sock_filter));
  const sock_fprog program{static_cast<unsigned short>(kPrefix + boot.filter_rows), rows};
  if (boot.filter_rows == 0 || host::raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) host::exit_group(122);
}

void go_on() {
  make_arena_roots();
  start_first_process(facts);
}

}  // namespace

const HostFacts& host_facts() {
  return facts;
}

extern "C" [[noreturn]] void kernel_boot(const std::uint64_t* stack) {
  read_host_facts(stack);
  map_shared_files();
  host::raw(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
  ThreadState* const state = take_thread_slot();
  if (state == nullptr) host::exit_group(123);
  state->entry = syscall_entry;
  state->cpuid_entry = cpuid_entry;
  state->host_tid = static_cast<std::uint32_t>(host::raw(SYS_gettid));
  asm volatile("wrgsbase %0" : : "r"(state));
  use_signal_stack(*state);
  install_host_handlers();
  install_filter();
  move_to_stack(state->kernel_stack, go_on);
}

}  // namespace belljar::kernel
