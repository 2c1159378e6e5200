#include "kernel/terminal/devices.h"

#include <linux/magic.h>

#include "kernel/base/text.h"
#include "kernel/fs/inode_file.h"
#include "kernel/terminal/terminal_files.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kFolderInode = 1;
constexpr std::string_view kMultiplexer = "ptmx";
constexpr std::uint64_t kFirstPosition = 3;  // of the numbered entries, after ".", ".." and ptmx

// /dev/pts/N. What it tells is the terminal's, so that all names of one tell the same.
class SlaveInode final : public Inode {
 public:
  explicit SlaveInode(Ref<Terminal> terminal) : terminal_(std::move(terminal)) {
    number = kTerminalInodesFrom + terminal_->number();
    device = kTerminalDevice;
    mode = terminal_->mode;
    uid = terminal_->uid;
    gid = terminal_->gid;
    rdev = kTerminalMajor << 8 | terminal_->number();
  }

  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) override {
    return open_slave(terminal_, flags, Ref<Inode>::of(this), std::move(dentry));
  }
  SysResult<void> fill_stat(struct stat* status) override {
    terminal_->fill_stat(status);
    return {};
  }
  SysResult<void> change(const AttributeChange& change) override {
    if (change.set_mode) mode = terminal_->mode = S_IFCHR | (change.mode & 07777);
    if (change.set_uid) uid = terminal_->uid = change.uid;
    if (change.set_gid) gid = terminal_->gid = change.gid;
    return {};
  }

 private:
  Ref<Terminal> terminal_;
};

// ptmx: each opening makes a pair.
class MultiplexerInode final : public Inode {
 public:
  MultiplexerInode() {
    number = kMultiplexerInode;
    device = kTerminalDevice;
    mode = S_IFCHR | 0666;
    rdev = 5 << 8 | 2;
  }

  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t) override {
    Ref<Terminal> terminal = TRY(Terminal::make());
    Ref<File> file = make_ref<MasterFile>(terminal, Ref<Inode>::of(this), std::move(dentry));
    if (!file) {
      terminal->close_master();
      return error(ENOMEM);
    }
    return file;
  }
};

class TerminalFolderFile final : public InodeFile {
 public:
  using InodeFile::InodeFile;
  SysResult<std::uint64_t> list(Buffers& to, std::uint64_t* position) override {
    EntryWriter writer(to);
    std::uint64_t at = *position;
    if (at == 0 && TRY(writer.add(kFolderInode, S_IFDIR, ".", 1))) at = 1;
    if (at == 1 && TRY(writer.add(kFolderInode, S_IFDIR, "..", 2))) at = 2;
    if (at == 2 && TRY(writer.add(kMultiplexerInode, S_IFCHR, kMultiplexer, kFirstPosition))) at = kFirstPosition;
    while (at >= kFirstPosition) {
      const std::uint32_t number = Terminal::next_used(static_cast<std::uint32_t>(at - kFirstPosition));
      if (number >= Terminal::kCountMax) break;
      char text[12];
      TextWriter name(text, sizeof text);
      name.number(number);
      const std::uint64_t next = kFirstPosition + number + 1;
      if (!TRY(writer.add(kTerminalInodesFrom + number, S_IFCHR, name.text(), next))) break;
      at = next;
    }
    const std::uint64_t written = TRY(writer.finish());
    *position = at;
    return written;
  }
  bool is_seekable() const override { return true; }
};

class TerminalFolder final : public Inode {
 public:
  TerminalFolder() {
    number = kFolderInode;
    device = kTerminalDevice;
    mode = S_IFDIR | 0755;
    links = 2;
  }

  bool keeps_names() const override { return false; }
  SysResult<Ref<Inode>> lookup(std::string_view name) override {
    Ref<Inode> found;
    if (name == kMultiplexer) {
      found = make_ref<MultiplexerInode>();
      if (!found) return error(ENOMEM);
      return found;
    }
    if (name.empty() || name.size() > 3 || (name[0] == '0' && name.size() > 1)) return error(ENOENT);
    std::uint32_t index = 0;
    for (const char digit : name) {
      if (digit < '0' || digit > '9') return error(ENOENT);
      index = index * 10 + static_cast<std::uint32_t>(digit - '0');
    }
    Ref<Terminal> terminal = Terminal::find(index);
    if (!terminal) return error(ENOENT);
    found = make_ref<SlaveInode>(std::move(terminal));
    if (!found) return error(ENOMEM);
    return found;
  }
  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t) override {
    Ref<File> file = make_ref<TerminalFolderFile>(Ref<Inode>::of(this), std::move(dentry));
    if (!file) return error(ENOMEM);
    return file;
  }
  Space space() override { return {.magic = DEVPTS_SUPER_MAGIC}; }
};

}  // namespace

Ref<Inode> make_terminal_folder() {
  return make_ref<TerminalFolder>();
}

SysResult<Ref<File>> open_controlling_terminal(std::uint32_t flags, Ref<Inode> inode, Ref<Dentry> dentry) {
  Ref<Terminal> terminal;
  {
    LockGuard tasks(tasks_lock());
    const ProcessGroup* const group = current_process().group;
    if (group != nullptr && group->session != nullptr) terminal = Ref<Terminal>::of(group->session->terminal);
  }
  if (!terminal) return error(ENXIO);
  return open_slave(std::move(terminal), flags, std::move(inode), std::move(dentry));
}

}  // namespace belljar::kernel
