// The open sides of a pseudo terminal.
#pragma once

#include "kernel/fs/inode.h"
#include "kernel/terminal/terminal.h"

namespace belljar::kernel {

class MasterFile final : public File {
 public:
  MasterFile(Ref<Terminal> terminal, Ref<Inode> inode, Ref<Dentry> dentry)
      : terminal_(std::move(terminal)), inode_(std::move(inode)), dentry_(std::move(dentry)) {}
  ~MasterFile() override { terminal_->close_master(); }

  FileKind kind() const override { return FileKind::terminal; }
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t*) override {
    return terminal_->read_output(to, is_nonblocking());
  }
  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t*) override {
    return terminal_->write_input(from, is_nonblocking());
  }
  Events ready() override { return terminal_->master_ready(); }
  WaitQueue* queue() override { return &terminal_->master_queue; }
  SysResult<std::uint64_t> ioctl(std::uint32_t request, std::uint64_t argument) override {
    return terminal_->ioctl(request, argument, true);
  }
  SysResult<void> stat(struct stat* status) override;
  std::size_t describe(char* text, std::size_t size) const override;
  Inode* inode() const override { return inode_.get(); }
  Dentry* dentry() const override { return dentry_.get(); }

 private:
  Ref<Terminal> terminal_;
  Ref<Inode> inode_;
  Ref<Dentry> dentry_;
};

class SlaveFile final : public File {
 public:
  // `generation`: of Terminal::open_slave(), which has counted it.
  SlaveFile(Ref<Terminal> terminal, std::uint32_t generation, Ref<Inode> inode, Ref<Dentry> dentry)
      : terminal_(std::move(terminal)), inode_(std::move(inode)), dentry_(std::move(dentry)), generation_(generation) {}
  ~SlaveFile() override { terminal_->close_slave(generation_); }

  FileKind kind() const override { return FileKind::terminal; }
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t*) override {
    return terminal_->read_input(to, is_nonblocking(), generation_);
  }
  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t*) override {
    return terminal_->write_output(from, is_nonblocking(), generation_);
  }
  Events ready() override { return terminal_->slave_ready(generation_); }
  WaitQueue* queue() override { return &terminal_->slave_queue; }
  SysResult<std::uint64_t> ioctl(std::uint32_t request, std::uint64_t argument) override;
  SysResult<void> stat(struct stat* status) override;
  std::size_t describe(char* text, std::size_t size) const override;
  Inode* inode() const override { return inode_.get(); }
  Dentry* dentry() const override { return dentry_.get(); }

 private:
  Ref<Terminal> terminal_;
  Ref<Inode> inode_;
  Ref<Dentry> dentry_;
  std::uint32_t generation_;
};

// The slave's side; it becomes the caller's controlling terminal where open(2) says so. `inode` and `dentry`: by which
// it was opened, or null.
SysResult<Ref<File>> open_slave(Ref<Terminal> terminal, std::uint32_t flags, Ref<Inode> inode, Ref<Dentry> dentry);
// TIOCGPTPEER: a descriptor.
SysResult<std::uint64_t> open_peer(Ref<Terminal> terminal, std::uint32_t flags);

}  // namespace belljar::kernel
