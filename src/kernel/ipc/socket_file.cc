#include "kernel/ipc/socket_file.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "kernel/ipc/unix_collect.h"
#include "kernel/task/process.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

SocketWait wait_of(const File& file, int message_flags, std::uint64_t timeout_ns) {
  SocketWait wait;
  wait.is_nonblocking = file.is_nonblocking() || (message_flags & MSG_DONTWAIT) != 0;
  if (timeout_ns != 0 && !wait.is_nonblocking) wait.deadline = now_ns() + timeout_ns;
  return wait;
}

}  // namespace

SocketFile::SocketFile(Ref<UnixSocket> socket) : socket_(std::move(socket)) {
  socket_->set_file(this);
}

SocketFile::~SocketFile() {
  socket_->set_file(nullptr);
  socket_->close();
  UnixCollection::run();
}

SocketWait SocketFile::send_wait(int message_flags) const {
  return wait_of(*this, message_flags, socket_->send_timeout_ns.load(std::memory_order_relaxed));
}

SocketWait SocketFile::receive_wait(int message_flags) const {
  return wait_of(*this, message_flags, socket_->receive_timeout_ns.load(std::memory_order_relaxed));
}

SysResult<std::uint64_t> SocketFile::send(Buffers& from, Outgoing& outgoing, int message_flags) {
  outgoing.wait = send_wait(message_flags);
  const SysResult<std::uint64_t> sent = socket_->send(from, outgoing);
  const bool is_broken = !sent && value_of(sent.error()) == EPIPE;
  if (is_broken && socket_->type() == SOCK_STREAM && (message_flags & MSG_NOSIGNAL) == 0) raise_signal(SIGPIPE);
  return sent;
}

SysResult<std::uint64_t> SocketFile::read(Buffers& to, std::uint64_t*) {
  Incoming incoming;
  incoming.wait = receive_wait(0);
  TRY_VOID(socket_->receive(to, incoming));
  return incoming.size;
}

SysResult<std::uint64_t> SocketFile::write(Buffers& from, std::uint64_t*) {
  Outgoing outgoing;
  outgoing.sender = own_credentials();
  return send(from, outgoing, 0);
}

SysResult<std::uint64_t> SocketFile::ioctl(std::uint32_t request, std::uint64_t argument) {
  if (request == FIONREAD) {
    if (socket_->is_listening()) return error(EINVAL);
    TRY_VOID(copy_out(argument, static_cast<int>(socket_->bytes_waiting())));
    return 0;
  }
  if (request == SIOCOUTQ) {
    TRY_VOID(copy_out(argument, static_cast<int>(socket_->bytes_under_way())));
    return 0;
  }
  return File::ioctl(request, argument);
}

SysResult<void> SocketFile::stat(struct stat* status) {
  fill_nameless_stat(status, socket_->facts, S_IFSOCK | 0777, kSocketDevice);
  return {};
}

std::size_t SocketFile::describe(char* text, std::size_t size) const {
  return describe_numbered(text, size, "socket", socket_->facts.number);
}

UnixSocket* socket_of(File& file) {
  return file.kind() == FileKind::socket ? &static_cast<SocketFile&>(file).socket() : nullptr;
}

}  // namespace belljar::kernel
