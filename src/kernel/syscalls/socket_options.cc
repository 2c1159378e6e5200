// getsockopt(2) and setsockopt(2): socket(7), unix(7).
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cstring>

#include "kernel/syscalls/socket_calls.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kSendBufferMin = 4608;
constexpr std::uint32_t kReceiveBufferMin = 2304;

// Switches that are kept and told, and change nothing here.
constexpr std::uint64_t switch_bit(int option) {
  return option < 64 ? 1ULL << option : 0;
}
constexpr std::uint64_t kSwitches = switch_bit(SO_DEBUG) | switch_bit(SO_REUSEADDR) | switch_bit(SO_DONTROUTE) |
                                    switch_bit(SO_BROADCAST) | switch_bit(SO_KEEPALIVE) | switch_bit(SO_OOBINLINE) |
                                    switch_bit(SO_REUSEPORT) | switch_bit(SO_TIMESTAMP) | switch_bit(SO_TIMESTAMPNS) |
                                    switch_bit(SO_RXQ_OVFL);

// A value to tell, as much of it as the caller has room for.
SysResult<void> tell(const SyscallArguments& arguments, const void* value, std::size_t size) {
  const auto room = TRY(copy_in<int>(arguments.values[4]));
  if (room < 0) return error(EINVAL);
  const std::size_t told = std::min(size, static_cast<std::size_t>(room));
  TRY_VOID(copy_out(arguments.values[3], value, told));
  return copy_out(arguments.values[4], static_cast<int>(told));
}

SysResult<void> tell_int(const SyscallArguments& arguments, std::uint64_t value) {
  const int word = static_cast<int>(value);
  return tell(arguments, &word, sizeof word);
}

SysResult<void> tell_time(const SyscallArguments& arguments, std::uint64_t nanoseconds) {
  const timeval time = to_timeval(nanoseconds);
  return tell(arguments, &time, sizeof time);
}

SysResult<void> get_option(UnixSocket& socket, int option, const SyscallArguments& arguments) {
  switch (option) {
    case SO_TYPE:
      return tell_int(arguments, static_cast<std::uint64_t>(socket.type()));
    case SO_DOMAIN:
      return tell_int(arguments, AF_UNIX);
    case SO_PROTOCOL:
    case SO_PRIORITY:
    case SO_MARK:
      return tell_int(arguments, 0);
    case SO_ERROR:
      return tell_int(arguments, static_cast<std::uint64_t>(socket.take_error()));
    case SO_ACCEPTCONN:
      return tell_int(arguments, socket.is_listening());
    case SO_SNDBUF:
      return tell_int(arguments, socket.send_buffer.load());
    case SO_RCVBUF:
      return tell_int(arguments, socket.receive_buffer.load());
    case SO_RCVLOWAT:
    case SO_SNDLOWAT:
      return tell_int(arguments, 1);
    case SO_PASSCRED:
      return tell_int(arguments, socket.passes_credentials.load());
    case SO_RCVTIMEO:
      return tell_time(arguments, socket.receive_timeout_ns.load());
    case SO_SNDTIMEO:
      return tell_time(arguments, socket.send_timeout_ns.load());
    case SO_PEERCRED: {
      const ucred credentials = socket.peer_credentials();
      return tell(arguments, &credentials, sizeof credentials);
    }
    case SO_LINGER: {
      const linger none{};
      return tell(arguments, &none, sizeof none);
    }
    default:
      if ((switch_bit(option) & kSwitches) == 0) return error(ENOPROTOOPT);
      return tell_int(arguments, (socket.switches.load() & switch_bit(option)) != 0);
  }
}

SysResult<void> set_timeout(std::atomic<std::uint64_t>& timeout, UserAddress from, std::uint32_t size) {
  if (size < sizeof(timeval)) return error(EINVAL);
  const auto time = TRY(copy_in<timeval>(from));
  if (time.tv_usec < 0 || time.tv_usec >= 1'000'000) return error(EDOM);
  // A negative time is a wait of none, which Linux makes one of no end.
  timeout.store(time.tv_sec < 0 ? 0 : TRY(to_nanoseconds(time)));
  return {};
}

std::uint32_t buffer_size(int asked, std::uint32_t least) {
  const std::uint32_t most = UnixSocket::kBufferMax / 2;
  return std::max(least, 2 * std::min(static_cast<std::uint32_t>(asked), most));
}

SysResult<void> set_switch(UnixSocket& socket, int option, int value) {
  if ((switch_bit(option) & kSwitches) == 0) return error(ENOPROTOOPT);
  if (value != 0) {
    socket.switches.fetch_or(switch_bit(option));
  } else {
    socket.switches.fetch_and(~switch_bit(option));
  }
  return {};
}

SysResult<void> set_option(UnixSocket& socket, int option, UserAddress from, std::uint32_t size) {
  if (option == SO_RCVTIMEO) return set_timeout(socket.receive_timeout_ns, from, size);
  if (option == SO_SNDTIMEO) return set_timeout(socket.send_timeout_ns, from, size);
  if (size < sizeof(int)) return error(EINVAL);
  const auto value = TRY(copy_in<int>(from));
  switch (option) {
    case SO_SNDBUF:
      socket.send_buffer.store(buffer_size(value, kSendBufferMin));
      return {};
    case SO_RCVBUF:
      socket.receive_buffer.store(buffer_size(value, kReceiveBufferMin));
      return {};
    case SO_SNDBUFFORCE:
    case SO_RCVBUFFORCE:
      return error(EPERM);
    case SO_PASSCRED:
      socket.passes_credentials.store(value != 0);
      return {};
    case SO_LINGER:
    case SO_PRIORITY:
    case SO_RCVLOWAT:
      return {};
    case SO_TYPE:
    case SO_DOMAIN:
    case SO_PROTOCOL:
    case SO_ERROR:
    case SO_ACCEPTCONN:
    case SO_PEERCRED:
    case SO_SNDLOWAT:
      return error(ENOPROTOOPT);
    default:
      return set_switch(socket, option, value);
  }
}

}  // namespace

SyscallResult sys_getsockopt(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  if (arguments.get<int>(1) != SOL_SOCKET) return error(EOPNOTSUPP);
  TRY_VOID(get_option(file->socket(), arguments.get<int>(2), arguments));
  return 0;
}

SyscallResult sys_setsockopt(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  if (arguments.get<int>(4) < 0) return error(EINVAL);
  if (arguments.get<int>(1) != SOL_SOCKET) return error(EOPNOTSUPP);
  TRY_VOID(set_option(file->socket(), arguments.get<int>(2), arguments.values[3], arguments.get<std::uint32_t>(4)));
  return 0;
}

}  // namespace belljar::kernel
