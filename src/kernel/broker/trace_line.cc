// Where --strace prints: the program's own stderr, so that lines come in order with what it prints there.
#include <cstring>

#include "kernel/broker/console.h"
#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/trace.h"

namespace belljar::kernel {

// Line and newline in one write, so that lines of two threads don't mix.
void trace_line(std::string_view line) {
  char text[kTraceLineMax + 2];
  const std::size_t size = line.size() < kTraceLineMax ? line.size() : kTraceLineMax;
  std::memcpy(text, line.data(), size);
  // The terminal that it goes to takes bytes as they are: its own line discipline is inside, and not on this way.
  const std::string_view end = shared_with_broker().boot.is_terminal != 0 ? "\r\n" : "\n";
  std::memcpy(text + size, end.data(), end.size());
  if (shared_with_broker().streams[shm::kStderr].is_ended.load() != 0) return;
  const Ref<File> to = open_console(shm::kStderr);
  if (!to) return;
  const Area area{reinterpret_cast<std::uint64_t>(text), size + end.size()};
  Buffers from = Buffers::of_kernel(area);
  static_cast<void>(to->write(from, nullptr));  // a signal that is to be seen to comes first
}

}  // namespace belljar::kernel
