// What the first process learns from the host.
#pragma once

#include <cstdint>

namespace belljar::kernel {

struct HostFacts {
  std::uint64_t argument_count = 0;
  const char* const* arguments = nullptr;  // on the host's first stack, which goes with the first exec
  const char* const* environment = nullptr;
  std::uint64_t hwcap = 0;
  std::uint64_t hwcap2 = 0;
  std::uint64_t signal_stack_min = 0;
  std::uint8_t random[16] = {};  // the seed of the kernel's random generator
};
const HostFacts& host_facts();

}  // namespace belljar::kernel
