// Ancillary data of sendmsg(2) and recvmsg(2): files (SCM_RIGHTS) and credentials (SCM_CREDENTIALS).
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "kernel/fs/fd_table.h"
#include "kernel/ipc/unix_message.h"
#include "kernel/mm/user_memory.h"

namespace belljar::kernel {

struct SentControl {
  Ref<PassedFiles> files;
  ucred sender{};
};
SysResult<SentControl> read_control(UserAddress from, std::uint64_t size);

// Writes control messages one after the other; what does not fit sets MSG_CTRUNC.
class ControlWriter {
 public:
  ControlWriter(UserAddress to, std::uint64_t room) : to_(to), room_(to == 0 ? 0 : room) {}

  SysResult<void> put_credentials(const ucred& sender);
  // Puts as many of the files into the caller's table as there is room to tell of.
  SysResult<void> put_files(PassedFiles& files, CloseOnExec close_on_exec);

  std::uint64_t used() const { return used_; }
  bool is_cut() const { return is_cut_; }

 private:
  SysResult<void> put_header(int type, std::uint64_t size);

  UserAddress to_;
  std::uint64_t room_;
  std::uint64_t used_ = 0;
  bool is_cut_ = false;
};

}  // namespace belljar::kernel
