#include "kernel/task/memory_use.h"

#include <algorithm>

#include "kernel/arena/heap.h"
#include "kernel/task/process.h"
#include "kernel/task/sandbox_facts.h"

namespace belljar::kernel {

// What guests have touched is known to the host alone; a half is said to be free of what the kernel itself does not
// use.
MemoryUse memory_use() {
  const std::uint64_t total = sandbox_facts().memory_bytes;
  const std::uint64_t kernel = heap_bytes_used();
  const std::uint64_t rest = total > kernel ? total - kernel : 0;
  return {total, rest / 2, 0};
}

std::uint64_t memory_peak_of(const Process& process) {
  return std::min(process.memory_peak_bytes.load(), sandbox_facts().memory_bytes);
}

std::uint64_t memory_peak_with_children(const Process& process) {
  return std::max(memory_peak_of(process), process.children_peak_bytes);
}

}  // namespace belljar::kernel
