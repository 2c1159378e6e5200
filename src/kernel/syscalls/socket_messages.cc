// Sending and receiving: send(2), recv(2).
#include <sys/socket.h>
#include <time.h>

#include <algorithm>

#include "kernel/ipc/control_messages.h"
#include "kernel/ipc/poll.h"
#include "kernel/ipc/socket_address.h"
#include "kernel/syscalls/socket_calls.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kMessagesMax = 1024;

// Where a message goes that says so: datagrams only.
SysResult<void> resolve_target(UnixSocket& socket, UserAddress name, std::uint32_t size, Outgoing& outgoing) {
  if (name == 0 || size == 0) return {};
  SocketAddress address = TRY(SocketAddress::read(name, size));
  if (socket.type() == SOCK_STREAM) return error(socket.peer() ? EISCONN : EOPNOTSUPP);
  if (socket.type() == SOCK_SEQPACKET) return {};
  const std::string_view text = TRY(address.text());
  outgoing.to = TRY(socket.find(text));
  return {};
}

SyscallResult send_message(SocketFile& file, Buffers& from, UserAddress name, std::uint32_t name_size,
                           Outgoing& outgoing, int flags) {
  if ((flags & MSG_OOB) != 0) return error(EOPNOTSUPP);
  UnixSocket& socket = file.socket();
  if (socket.passes_credentials.load()) TRY_VOID(socket.bind_automatically());
  TRY_VOID(resolve_target(socket, name, name_size, outgoing));
  return file.send(from, outgoing, flags);
}

SyscallResult send_header(SocketFile& file, const msghdr& header, int flags) {
  const AreaList areas = TRY(AreaList::read(reinterpret_cast<UserAddress>(header.msg_iov), header.msg_iovlen));
  SentControl control = TRY(read_control(reinterpret_cast<UserAddress>(header.msg_control), header.msg_controllen));
  Outgoing outgoing;
  outgoing.files = std::move(control.files);
  outgoing.sender = control.sender;
  Buffers from = areas.buffers();
  return send_message(file, from, reinterpret_cast<UserAddress>(header.msg_name), header.msg_namelen, outgoing, flags);
}

SysResult<Incoming> receive_message(SocketFile& file, Buffers& to, int flags) {
  if ((flags & MSG_OOB) != 0) return error(EOPNOTSUPP);
  if ((flags & MSG_ERRQUEUE) != 0) return error(EAGAIN);
  Incoming incoming;
  incoming.is_peek = (flags & MSG_PEEK) != 0;
  incoming.is_wait_all = (flags & MSG_WAITALL) != 0;
  incoming.wait = file.receive_wait(flags);
  TRY_VOID(file.socket().receive(to, incoming));
  return incoming;
}

std::uint64_t size_to_tell(const Incoming& incoming, int flags) {
  return (flags & MSG_TRUNC) != 0 && incoming.full_size > incoming.size ? incoming.full_size : incoming.size;
}

// Receives into what `header` in guest memory describes, and changes it there.
SyscallResult receive_header(SocketFile& file, UserAddress at, int flags) {
  const auto header = TRY(copy_in<msghdr>(at));
  const AreaList areas = TRY(AreaList::read(reinterpret_cast<UserAddress>(header.msg_iov), header.msg_iovlen));
  Buffers to = areas.buffers();
  const Incoming incoming = TRY(receive_message(file, to, flags));
  ControlWriter control(reinterpret_cast<UserAddress>(header.msg_control), header.msg_controllen);
  if (file.socket().passes_credentials.load()) TRY_VOID(control.put_credentials(incoming.sender));
  if (incoming.files) {
    const CloseOnExec close_on_exec = (flags & MSG_CMSG_CLOEXEC) != 0 ? CloseOnExec::yes : CloseOnExec::no;
    TRY_VOID(control.put_files(*incoming.files, close_on_exec));
  }
  std::uint32_t name_size = 0;
  if (header.msg_name != nullptr && incoming.source) {
    const auto name = reinterpret_cast<UserAddress>(header.msg_name);
    name_size = TRY(put_address(incoming.source, name, header.msg_namelen));
  }
  int told = flags & MSG_CMSG_CLOEXEC;
  if (incoming.full_size > incoming.size) told |= MSG_TRUNC;
  if (control.is_cut()) told |= MSG_CTRUNC;
  if (header.msg_name != nullptr) TRY_VOID(copy_out(at + offsetof(msghdr, msg_namelen), name_size));
  TRY_VOID(copy_out(at + offsetof(msghdr, msg_controllen), control.used()));
  TRY_VOID(copy_out(at + offsetof(msghdr, msg_flags), told));
  return size_to_tell(incoming, flags);
}

}  // namespace

SyscallResult sys_sendto(const SyscallArguments& arguments) {
  const Area area{arguments.values[1], std::min(arguments.values[2], kTransferMax)};
  Buffers from = Buffers::of_guest({&area, 1});
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  Outgoing outgoing;
  outgoing.sender = own_credentials();
  return send_message(*file, from, arguments.values[4], arguments.get<std::uint32_t>(5), outgoing,
                      arguments.get<int>(3));
}

SyscallResult sys_sendmsg(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  const auto header = TRY(copy_in<msghdr>(arguments.values[1]));
  return send_header(*file, header, arguments.get<int>(2));
}

SyscallResult sys_sendmmsg(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  const std::uint32_t count = std::min(arguments.get<std::uint32_t>(2), kMessagesMax);
  std::uint32_t done = 0;
  SyscallResult result = 0;
  for (; done < count; ++done) {
    const UserAddress at = arguments.values[1] + done * sizeof(mmsghdr);
    const auto header = copy_in<msghdr>(at);
    result = header ? send_header(*file, *header, arguments.get<int>(3)) : std::unexpected(header.error());
    if (!result) break;
    const auto copied = copy_out(at + offsetof(mmsghdr, msg_len), static_cast<unsigned>(*result));
    if (copied) continue;
    result = std::unexpected(copied.error());
    break;
  }
  if (done == 0 && !result) return result;
  return done;
}

SyscallResult sys_recvfrom(const SyscallArguments& arguments) {
  const Area area{arguments.values[1], std::min(arguments.values[2], kTransferMax)};
  Buffers to = Buffers::of_guest({&area, 1});
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  const auto flags = arguments.get<int>(3);
  const Incoming incoming = TRY(receive_message(*file, to, flags));
  const UserAddress name = arguments.values[4];
  if (name != 0 && incoming.source) {
    TRY_VOID(tell_address(incoming.source, name, arguments.values[5]));
  } else if (name != 0) {
    TRY_VOID(copy_out(arguments.values[5], 0));
  }
  return size_to_tell(incoming, flags);
}

SyscallResult sys_recvmsg(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  return receive_header(*file, arguments.values[1], arguments.get<int>(2));
}

SyscallResult sys_recvmmsg(const SyscallArguments& arguments) {
  const Ref<SocketFile> file = TRY(get_socket(arguments.get<int>(0)));
  const std::uint32_t count = std::min(arguments.get<std::uint32_t>(2), kMessagesMax);
  int flags = arguments.get<int>(3);
  const bool waits_for_one = (flags & MSG_WAITFORONE) != 0;
  flags &= ~static_cast<int>(MSG_WAITFORONE);
  Deadline deadline = kNever;
  if (arguments.values[4] != 0) {
    const auto time = TRY(copy_in<timespec>(arguments.values[4]));
    deadline = now_ns() + TRY(to_nanoseconds(time));
  }
  std::uint32_t done = 0;
  SyscallResult result = 0;
  while (done < count) {
    const UserAddress at = arguments.values[1] + done * sizeof(mmsghdr);
    result = receive_header(*file, at, flags);
    if (!result) break;
    const auto copied = copy_out(at + offsetof(mmsghdr, msg_len), static_cast<unsigned>(*result));
    if (!copied) {
      result = std::unexpected(copied.error());
      break;
    }
    ++done;
    if (waits_for_one) flags |= MSG_DONTWAIT;
    // As on Linux the time is looked at between messages only.
    if (now_ns() >= deadline) break;
  }
  if (done == 0 && !result) return result;
  return done;
}

}  // namespace belljar::kernel
