// What the sandbox is told about its machine: set by the boot, constant afterwards; in the arena.
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>

namespace belljar::kernel {

struct SandboxFacts {
  char host_name[65] = "belljar";
  std::uint64_t memory_bytes = 256ULL << 20;  // the memory limit
  std::uint32_t cpu_count = 1;                // as many as the CPU quota covers
  std::uint32_t tasks_max = 256;
  std::uint64_t started_ns = 0;       // CLOCK_MONOTONIC: when "the machine" was booted
  std::uint8_t random_seed[32] = {};  // the host's getrandom(2); taken and wiped by the first use
};

SandboxFacts& sandbox_facts();

// What uname(2), /proc/version and /proc/sys/kernel tell. The release is one that has what this kernel has; programs
// look for features by it.
inline constexpr char kSystemName[] = "Linux";
inline constexpr char kRelease[] = "6.1.0-belljar";
inline constexpr char kVersion[] = "#1 SMP Belljar user-space kernel";
inline constexpr char kMachine[] = "x86_64";
inline constexpr char kDomainName[] = "(none)";

inline constexpr std::uint32_t kPidMax = 32768;

}  // namespace belljar::kernel
