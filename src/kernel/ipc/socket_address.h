// Addresses of sockets in guest memory: unix(7).
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string_view>

#include "kernel/ipc/unix_message.h"
#include "kernel/mm/user_memory.h"

namespace belljar::kernel {

class SocketAddress {
 public:
  // EINVAL for a size that none has.
  static SysResult<SocketAddress> read(UserAddress from, std::uint32_t size);

  sa_family_t family() const { return size_ < sizeof(sa_family_t) ? sa_family_t{AF_UNSPEC} : address_.sun_family; }
  // Only the family: the kernel chooses a name (bind(2)).
  bool is_bare() const { return size_ == sizeof(sa_family_t); }
  // EINVAL where it is none of unix(7).
  SysResult<std::string_view> text();

 private:
  sockaddr_un address_{};
  char end_ = '\0';  // a path may fill all of sun_path
  std::uint32_t size_ = 0;
};

// As accept(2) and the like tell an address: as much as fits, and its whole size. `to` 0: nothing. A null name: the
// family alone.
SysResult<void> tell_address(const Ref<UnixName>& name, UserAddress to, UserAddress size);
// The same for msg_name; returns the size.
SysResult<std::uint32_t> put_address(const Ref<UnixName>& name, UserAddress to, std::uint32_t room);

}  // namespace belljar::kernel
