#include "kernel/ipc/control_messages.h"

#include <algorithm>
#include <cstring>

#include "kernel/ipc/unix_socket.h"
#include "kernel/task/process.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kControlMax = 20480;  // /proc/sys/net/core/optmem_max
constexpr std::uint64_t kHeaderSize = CMSG_LEN(0);

// The caller's control data, copied in whole.
class ControlCopy {
 public:
  explicit ControlCopy(std::uint64_t size) : bytes_(static_cast<char*>(heap_allocate(size))), size_(size) {}
  ~ControlCopy() {
    if (bytes_ != nullptr) heap_free(bytes_, size_);
  }
  ControlCopy(const ControlCopy&) = delete;
  ControlCopy& operator=(const ControlCopy&) = delete;
  char* bytes() { return bytes_; }

 private:
  char* bytes_;
  std::uint64_t size_;
};

SysResult<void> add_files(Ref<PassedFiles>& files, const char* numbers, std::uint64_t size) {
  const std::uint64_t count = size / sizeof(int);
  if (count == 0) return {};
  if (!files) files = PassedFiles::make(PassedFiles::kCountMax);
  if (!files) return error(ENOMEM);
  if (files->count() + count > PassedFiles::kCountMax) return error(EINVAL);
  for (std::uint64_t i = 0; i < count; ++i) {
    int fd = 0;
    std::memcpy(&fd, numbers + i * sizeof fd, sizeof fd);
    files->add(TRY(current().files->get_any(fd)));
  }
  return {};
}

// Nobody has a capability to say that he is somebody else.
SysResult<void> check_sender(const ucred& sender) {
  const Credentials& who = current().credentials;
  const bool is_own_uid = sender.uid == who.uid || sender.uid == who.euid || sender.uid == who.suid;
  const bool is_own_gid = sender.gid == who.gid || sender.gid == who.egid || sender.gid == who.sgid;
  if (sender.pid != current_process().pid || !is_own_uid || !is_own_gid) return error(EPERM);
  return {};
}

SysResult<void> read_one(SentControl& control, const cmsghdr& header, const char* data) {
  if (header.cmsg_level != SOL_SOCKET) return {};
  const std::uint64_t size = header.cmsg_len - kHeaderSize;
  if (header.cmsg_type == SCM_RIGHTS) return add_files(control.files, data, size);
  if (header.cmsg_type != SCM_CREDENTIALS || size != sizeof(ucred)) return error(EINVAL);
  ucred sender{};
  std::memcpy(&sender, data, sizeof sender);
  TRY_VOID(check_sender(sender));
  control.sender = sender;
  return {};
}

}  // namespace

SysResult<SentControl> read_control(UserAddress from, std::uint64_t size) {
  SentControl control;
  control.sender = own_credentials();
  if (from == 0 || size == 0) return control;
  if (size > kControlMax) return error(ENOBUFS);
  ControlCopy copy(size);
  if (copy.bytes() == nullptr) return error(ENOBUFS);
  TRY_VOID(copy_in(copy.bytes(), from, size));
  for (std::uint64_t at = 0; size - at >= kHeaderSize;) {
    cmsghdr header{};
    std::memcpy(&header, copy.bytes() + at, sizeof header);
    if (header.cmsg_len < kHeaderSize || header.cmsg_len > size - at) return error(EINVAL);
    TRY_VOID(read_one(control, header, copy.bytes() + at + kHeaderSize));
    at += std::min<std::uint64_t>(CMSG_ALIGN(header.cmsg_len), size - at);
  }
  return control;
}

SysResult<void> ControlWriter::put_header(int type, std::uint64_t size) {
  cmsghdr header{};
  header.cmsg_len = size;
  header.cmsg_level = SOL_SOCKET;
  header.cmsg_type = type;
  return copy_out(to_ + used_, &header, kHeaderSize);
}

SysResult<void> ControlWriter::put_credentials(const ucred& sender) {
  const std::uint64_t left = room_ - used_;
  if (left < kHeaderSize) {
    is_cut_ = true;
    return {};
  }
  const std::uint64_t size = std::min<std::uint64_t>(left, CMSG_LEN(sizeof sender));
  is_cut_ = is_cut_ || size < CMSG_LEN(sizeof sender);
  TRY_VOID(put_header(SCM_CREDENTIALS, size));
  TRY_VOID(copy_out(to_ + used_ + kHeaderSize, &sender, size - kHeaderSize));
  used_ += std::min<std::uint64_t>(left, CMSG_SPACE(sizeof sender));
  return {};
}

SysResult<void> ControlWriter::put_files(PassedFiles& files, CloseOnExec close_on_exec) {
  const std::uint64_t left = room_ - used_;
  const std::uint64_t room = left < kHeaderSize ? 0 : (left - kHeaderSize) / sizeof(int);
  std::uint32_t count = 0;
  while (count < files.count() && count < room) {
    const SysResult<int> fd = current().files->add(Ref<File>::of(&files.file(count)), close_on_exec);
    if (!fd) break;
    TRY_VOID(copy_out(to_ + used_ + kHeaderSize + count * sizeof(int), *fd));
    ++count;
  }
  is_cut_ = is_cut_ || count < files.count();
  if (count == 0) return {};
  TRY_VOID(put_header(SCM_RIGHTS, CMSG_LEN(count * sizeof(int))));
  used_ += std::min<std::uint64_t>(left, CMSG_SPACE(count * sizeof(int)));
  return {};
}

}  // namespace belljar::kernel
