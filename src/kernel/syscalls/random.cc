#include "kernel/arena/random.h"

#include <sys/random.h>

#include <algorithm>

#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {

// getrandom(2). The generator is seeded from the start, so nothing blocks.
SyscallResult sys_getrandom(const SyscallArguments& arguments) {
  const auto to = arguments.get<UserAddress>(0);
  const std::uint64_t size = std::min(arguments.get<std::uint64_t>(1), kTransferMax);
  const auto flags = arguments.get<std::uint32_t>(2);
  if ((flags & ~std::uint32_t{GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE}) != 0) return error(EINVAL);
  if ((flags & (GRND_RANDOM | GRND_INSECURE)) == (GRND_RANDOM | GRND_INSECURE)) return error(EINVAL);

  RandomKey key;
  std::uint8_t part[256];
  std::uint64_t done = 0;
  while (done < size) {
    const std::size_t count = std::min<std::uint64_t>(size - done, sizeof part);
    key.fill({part, count});
    if (const auto copied = copy_out(to + done, part, count); !copied) {
      if (done == 0) return std::unexpected(copied.error());
      break;
    }
    done += count;
    if (done < size && has_signal()) break;
  }
  return done;
}

}  // namespace belljar::kernel
