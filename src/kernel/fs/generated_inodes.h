// The inodes and open files of made-up file systems; of generated.cc alone.
#pragma once

#include "kernel/fs/generated.h"
#include "kernel/fs/inode_file.h"

namespace belljar::kernel {

// Where in a tree an inode is.
struct GeneratedPlace {
  const GeneratedTree* tree = nullptr;
  std::uint32_t device = 0;
  std::string_view path;              // in a row's
  const GeneratedRow* row = nullptr;  // null: a folder that has no row of its own
  std::size_t index = 0;              // of the first row that has it in its path
  Subject subject;
};

// Files and devices.
class GeneratedInode : public Inode {
 public:
  explicit GeneratedInode(const GeneratedPlace& place) : place_(place) {}
  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) override;
  // Truncating one on opening does nothing; nothing else can be changed.
  SysResult<void> change(const AttributeChange& change) final;
  Space space() final;
  SysResult<void> make_text(LongText& to) const;
  const GeneratedPlace& place() const { return place_; }

 private:
  GeneratedPlace place_;
};

class GeneratedLink final : public GeneratedInode {
 public:
  using GeneratedInode::GeneratedInode;
  SysResult<std::size_t> read_link(char* to, std::size_t to_size) override;
  bool is_magic() const override { return place().row->place != nullptr; }
  SysResult<Ref<Dentry>> follow_magic() override;
};

class GeneratedFolder final : public GeneratedInode {
 public:
  using GeneratedInode::GeneratedInode;
  SysResult<Ref<Inode>> lookup(std::string_view name) override;
  // Trees with numbers change by themselves.
  bool keeps_names() const override { return place().tree->numbered.empty(); }
  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) override;
  SysResult<void> list(EntryWriter& to, std::uint64_t* position);

 private:
  const NumberedPart* find_numbered(std::string_view part) const;
  GeneratedPlace below(std::size_t index, std::string_view part) const;
  bool is_first(std::size_t index, std::string_view part) const;
  SysResult<bool> list_row(EntryWriter& to, std::size_t index, std::string_view part, std::uint64_t* position) const;
};

// Their contents and names are made under locks of any rank, while the position's lock is held: so that is below all.
class GeneratedFolderFile final : public InodeFile {
 public:
  GeneratedFolderFile(Ref<Inode> inode, Ref<Dentry> dentry)
      : InodeFile(std::move(inode), std::move(dentry), LockRank::generated) {}
  bool is_seekable() const override { return true; }
  SysResult<std::uint64_t> read(Buffers&, std::uint64_t*) override { return error(EISDIR); }
  SysResult<std::uint64_t> list(Buffers& to, std::uint64_t* position) override;
};

class GeneratedFile final : public InodeFile {
 public:
  GeneratedFile(Ref<Inode> inode, Ref<Dentry> dentry)
      : InodeFile(std::move(inode), std::move(dentry), LockRank::generated) {}
  bool is_seekable() const override { return true; }
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position) override;
  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t* position) override;

 private:
  Lock text_lock_{LockRank::object};
  LongText text_;
  std::atomic<bool> has_text_ = false;
};

}  // namespace belljar::kernel
