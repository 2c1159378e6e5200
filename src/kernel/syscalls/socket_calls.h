// What the calls on sockets share.
#pragma once

#include "kernel/ipc/socket_file.h"

namespace belljar::kernel {

// EBADF, ENOTSOCK.
SysResult<Ref<SocketFile>> get_socket(int fd);

}  // namespace belljar::kernel
