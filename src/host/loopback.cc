#include "host/loopback.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace belljar::host {

int bring_up_loopback() {
  const Fd socket_fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_fd.is_open()) return -errno;
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ::ioctl(socket_fd.get(), SIOCSIFFLAGS, &request) == 0 ? 0 : -errno;
}

}  // namespace belljar::host
