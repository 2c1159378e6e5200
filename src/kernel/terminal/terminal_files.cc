#include "kernel/terminal/terminal_files.h"

#include <fcntl.h>

#include "kernel/base/text.h"
#include "kernel/ipc/nameless.h"
#include "kernel/terminal/devices.h"

namespace belljar::kernel {

SysResult<void> MasterFile::stat(struct stat* status) {
  if (inode_) return inode_->fill_stat(status);
  fill_nameless_stat(status, {.number = kMultiplexerInode}, S_IFCHR | 0666, kTerminalDevice);
  return {};
}

std::size_t MasterFile::describe(char* text, std::size_t size) const {
  return describe_text(text, size, "/dev/pts/ptmx");
}

SysResult<std::uint64_t> SlaveFile::ioctl(std::uint32_t request, std::uint64_t argument) {
  if (terminal_->is_hung_up(generation_)) return error(EIO);
  return terminal_->ioctl(request, argument, false);
}

SysResult<void> SlaveFile::stat(struct stat* status) {
  if (inode_) return inode_->fill_stat(status);
  terminal_->fill_stat(status);
  return {};
}

std::size_t SlaveFile::describe(char* text, std::size_t size) const {
  TextWriter writer(text, size);
  (writer << "/dev/pts/").number(terminal_->number());
  return writer.text().size();
}

SysResult<Ref<File>> open_slave(Ref<Terminal> terminal, std::uint32_t flags, Ref<Inode> inode, Ref<Dentry> dentry) {
  const std::uint32_t generation = TRY(terminal->open_slave());
  Ref<SlaveFile> file = make_ref<SlaveFile>(terminal, generation, std::move(inode), std::move(dentry));
  if (!file) {
    terminal->close_slave(generation);
    return error(ENOMEM);
  }
  if ((flags & O_NOCTTY) == 0) static_cast<void>(terminal->become_controlling());
  return Ref<File>(std::move(file));
}

SysResult<std::uint64_t> open_peer(Ref<Terminal> terminal, std::uint32_t flags) {
  Ref<File> file = TRY(open_slave(std::move(terminal), flags, {}, {}));
  return TRY(add_new_file(std::move(file), flags & O_ACCMODE, flags));
}

}  // namespace belljar::kernel
