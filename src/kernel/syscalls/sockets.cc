// Sockets: making, naming and connecting them. Only those of unix(7) exist.
#include <fcntl.h>
#include <sys/socket.h>

#include "kernel/ipc/socket_address.h"
#include "kernel/ipc/socket_file.h"
#include "kernel/syscalls/socket_calls.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {

SysResult<Ref<SocketFile>> get_socket(int fd) {
  Ref<File> file = TRY(current().files->get(fd));
  if (file->kind() != FileKind::socket) return error(ENOTSOCK);
  return Ref<SocketFile>::adopt(static_cast<SocketFile*>(file.leak()));
}

namespace {

constexpr std::uint32_t kTypeMask = 0xf;

struct SocketKind {
  int type;
  std::uint32_t flags;
};

SysResult<SocketKind> check_kind(int family, std::uint32_t type_and_flags, int protocol) {
  const std::uint32_t flags = type_and_flags & ~kTypeMask;
  if ((flags & ~static_cast<std::uint32_t>(SOCK_CLOEXEC | SOCK_NONBLOCK)) != 0) return error(EINVAL);
  if (family != AF_UNIX) return error(EAFNOSUPPORT);
  if (protocol != 0 && protocol != PF_UNIX) return error(EPROTONOSUPPORT);
  switch (type_and_flags & kTypeMask) {
    case SOCK_STREAM:
      return SocketKind{SOCK_STREAM, flags};
    case SOCK_DGRAM:
    case SOCK_RAW:
      return SocketKind{SOCK_DGRAM, flags};
    case SOCK_SEQPACKET:
      return SocketKind{SOCK_SEQPACKET, flags};
    default:
      return error(ESOCKTNOSUPPORT);
  }
}

SyscallResult accept_connection(const SyscallArguments& arguments, std::uint32_t flags) {
  if ((flags & ~static_cast<std::uint32_t>(SOCK_CLOEXEC | SOCK_NONBLOCK)) != 0) return error(EINVAL);
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  Ref<UnixSocket> connection = TRY(file->socket().accept(file->receive_wait(0)));
  Ref<UnixName> name;
  if (const Ref<UnixSocket> peer = connection->peer()) name = peer->name();
  Ref<SocketFile> accepted = make_ref<SocketFile>(connection);
  if (!accepted) {
    connection->close();
    return error(ENOMEM);
  }
  TRY_VOID(tell_address(name, arguments.values[1], arguments.values[2]));
  return TRY(add_new_file(std::move(accepted), O_RDWR, flags));
}

SysResult<void> connect_datagram(UnixSocket& socket, SocketAddress& address) {
  if (address.family() == AF_UNSPEC) return socket.set_peer({});
  const std::string_view text = TRY(address.text());
  if (socket.passes_credentials.load()) TRY_VOID(socket.bind_automatically());
  Ref<UnixSocket> peer = TRY(socket.find(text));
  const Ref<UnixSocket> heard = peer->peer();
  if (heard && heard.get() != &socket) return error(EPERM);
  return socket.set_peer(std::move(peer));
}

}  // namespace

SyscallResult sys_socket(const SyscallArguments& arguments) {
  const SocketKind kind =
      TRY(check_kind(arguments.get<int>(0), arguments.get<std::uint32_t>(1), arguments.get<int>(2)));
  Ref<UnixSocket> socket = make_ref<UnixSocket>(kind.type);
  if (!socket) return error(ENOMEM);
  return TRY(add_new_file(make_ref<SocketFile>(std::move(socket)), O_RDWR, kind.flags));
}

SyscallResult sys_socketpair(const SyscallArguments& arguments) {
  const SocketKind kind =
      TRY(check_kind(arguments.get<int>(0), arguments.get<std::uint32_t>(1), arguments.get<int>(2)));
  Ref<UnixSocket> sockets[2] = {make_ref<UnixSocket>(kind.type), make_ref<UnixSocket>(kind.type)};
  if (!sockets[0] || !sockets[1]) return error(ENOMEM);
  Ref<SocketFile> files[2] = {make_ref<SocketFile>(sockets[0]), make_ref<SocketFile>(sockets[1])};
  if (!files[0] || !files[1]) return error(ENOMEM);
  UnixSocket::connect_pair(sockets[0], sockets[1]);
  int fds[2];
  fds[0] = TRY(add_new_file(std::move(files[0]), O_RDWR, kind.flags));
  const SysResult<int> second = add_new_file(std::move(files[1]), O_RDWR, kind.flags);
  if (second) fds[1] = *second;
  const SysResult<void> copied =
      second ? copy_out(arguments.values[3], fds, sizeof fds) : std::unexpected(second.error());
  if (copied) return 0;
  static_cast<void>(current().files->close(fds[0]));
  if (second) static_cast<void>(current().files->close(fds[1]));
  return std::unexpected(copied.error());
}

SyscallResult sys_bind(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  SocketAddress address = TRY(SocketAddress::read(arguments.values[1], arguments.get<std::uint32_t>(2)));
  if (address.family() == AF_UNIX && address.is_bare()) {
    TRY_VOID(file->socket().bind_automatically());
    return 0;
  }
  const std::string_view text = TRY(address.text());
  TRY_VOID(file->socket().bind(text));
  return 0;
}

SyscallResult sys_listen(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  TRY_VOID(file->socket().listen(arguments.get<std::uint32_t>(1)));
  return 0;
}

SyscallResult sys_accept(const SyscallArguments& arguments) {
  return accept_connection(arguments, 0);
}

SyscallResult sys_accept4(const SyscallArguments& arguments) {
  return accept_connection(arguments, arguments.get<std::uint32_t>(3));
}

SyscallResult sys_connect(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  UnixSocket& socket = file->socket();
  SocketAddress address = TRY(SocketAddress::read(arguments.values[1], arguments.get<std::uint32_t>(2)));
  if (socket.type() == SOCK_DGRAM) {
    TRY_VOID(connect_datagram(socket, address));
    return 0;
  }
  const std::string_view text = TRY(address.text());
  if (socket.passes_credentials.load()) TRY_VOID(socket.bind_automatically());
  const Ref<UnixSocket> listener = TRY(socket.find(text));
  TRY_VOID(socket.connect(listener, file->send_wait(0)));
  return 0;
}

SyscallResult sys_shutdown(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  TRY_VOID(file->socket().shutdown(arguments.get<int>(1)));
  return 0;
}

SyscallResult sys_getsockname(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  TRY_VOID(tell_address(file->socket().name(), arguments.values[1], arguments.values[2]));
  return 0;
}

SyscallResult sys_getpeername(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  const Ref<UnixSocket> peer = file->socket().peer();
  if (!peer) return error(ENOTCONN);
  TRY_VOID(tell_address(peer->name(), arguments.values[1], arguments.values[2]));
  return 0;
}

}  // namespace belljar::kernel
