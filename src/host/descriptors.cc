#include "host/descriptors.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace belljar::host {

void close_all_but(std::initializer_list<int> keep) {
  std::array<int, 16> sorted{};
  const auto end = std::copy_n(keep.begin(), std::min(keep.size(), sorted.size()), sorted.begin());
  std::sort(sorted.begin(), end);
  unsigned next = 0;
  for (auto fd = sorted.begin(); fd != end; ++fd) {
    if (*fd < 0) continue;
    const auto kept = static_cast<unsigned>(*fd);
    if (kept > next) ::syscall(SYS_close_range, next, kept - 1, 0);
    next = kept + 1;
  }
  ::syscall(SYS_close_range, next, ~0U, 0);
}

}  // namespace belljar::host
