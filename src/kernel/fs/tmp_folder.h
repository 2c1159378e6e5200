// Folders of tmpfs; of this folder alone.
#pragma once

#include "kernel/fs/inode_file.h"
#include "kernel/fs/tmp_inode.h"
#include "kernel/fs/tree.h"

namespace belljar::kernel {

// The names are in a list by age, which getdents(2) follows by their cookies, and in a hash table.
class TmpFolder final : public TmpInode {
 public:
  // As in Linux's tmpfs, where a folder is as large as its names are many.
  static constexpr std::uint64_t kNameSize = 20;
  static constexpr std::uint64_t kEmptySize = 2 * kNameSize;

  using TmpInode::TmpInode;
  ~TmpFolder() override;

  SysResult<Ref<Inode>> lookup(std::string_view name) override;
  SysResult<Ref<Inode>> create(std::string_view name, std::uint32_t file_mode, std::uint64_t device_id,
                               const Credentials& who) override;
  SysResult<Ref<Inode>> make_symlink(std::string_view name, std::string_view target, const Credentials& who) override;
  SysResult<Ref<Inode>> make_nameless(std::uint32_t file_mode, const Credentials& who) override;
  SysResult<void> link(std::string_view name, Inode& inode) override;
  SysResult<void> unlink(std::string_view name, Inode& inode) override;
  SysResult<void> remove_folder(std::string_view name, Inode& inode) override;
  SysResult<void> rename(std::string_view from, Inode& moved, Inode& to_folder, std::string_view to, Inode* replaced,
                         bool exchange) override;
  bool is_empty_folder() override { return count_ == 0; }
  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) override;

 private:
  friend class TmpFolderFile;
  friend class ::belljar::broker::ArenaReader;
  // Followed by the name.
  struct Entry {
    Entry* hash_next;
    Entry* next;
    Entry* previous;
    Ref<Inode> inode;
    std::uint64_t cookie;
    std::uint32_t hash;
    std::uint32_t name_size;

    char* text() { return reinterpret_cast<char*>(this + 1); }
    std::string_view name() { return {text(), name_size}; }
  };
  Entry** find(std::string_view name, std::uint32_t hash);
  SysResult<void> add(std::string_view name, Ref<Inode> inode);
  void remove(std::string_view name);
  void note_change(int links_added);
  SysResult<void> grow();
  SysResult<void> take_over(TmpInode& inode, std::uint32_t file_mode, const Credentials& who);

  Entry** buckets_ = nullptr;
  std::uint32_t bucket_count_ = 0;
  std::uint32_t count_ = 0;
  std::uint64_t removals_ = 0;  // what File's hint is good for
  Entry* first_ = nullptr;
  Entry* last_ = nullptr;
  std::uint64_t next_cookie_ = 3;  // 1 and 2 come after "." and ".."
};

// An open folder: where it reads on is told by a cookie, found again quickly while nothing was removed.
class TmpFolderFile final : public InodeFile {
 public:
  using InodeFile::InodeFile;
  bool is_seekable() const override { return true; }
  SysResult<std::uint64_t> read(Buffers&, std::uint64_t*) override { return error(EISDIR); }
  SysResult<std::uint64_t> list(Buffers& to, std::uint64_t* position) override;

 private:
  TmpFolder::Entry* hint_ = nullptr;
  std::uint64_t hint_cookie_ = 0;
  std::uint64_t hint_removals_ = 0;
};

}  // namespace belljar::kernel
