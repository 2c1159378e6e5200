// The open file description of a socket.
#pragma once

#include "kernel/fs/file.h"
#include "kernel/ipc/unix_socket.h"

namespace belljar::kernel {

class SocketFile final : public File {
 public:
  explicit SocketFile(Ref<UnixSocket> socket);
  ~SocketFile() override;

  FileKind kind() const override { return FileKind::socket; }
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position) override;
  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t* position) override;
  Events ready() override { return socket_->ready(); }
  WaitQueue* queue() override { return &socket_->queue; }
  SysResult<std::uint64_t> ioctl(std::uint32_t request, std::uint64_t argument) override;
  SysResult<void> stat(struct stat* status) override;
  std::size_t describe(char* text, std::size_t size) const override;

  UnixSocket& socket() { return *socket_; }
  // How a call with these MSG_ flags waits.
  SocketWait send_wait(int message_flags) const;
  SocketWait receive_wait(int message_flags) const;
  // Sends with SIGPIPE where that is due.
  SysResult<std::uint64_t> send(Buffers& from, Outgoing& outgoing, int message_flags);

 private:
  Ref<UnixSocket> socket_;
};

// Null where it is another file.
UnixSocket* socket_of(File& file);

}  // namespace belljar::kernel
