// The inodes of the read-only tree; of this folder alone. Each knows its path below the root, by which the broker is
// asked.
#pragma once

#include "kernel/fs/host_tree.h"
#include "kernel/fs/inode_file.h"
#include "kernel/fs/tree.h"

namespace belljar::kernel {

// What all of one tree share.
struct HostMount {
  HostTree* tree;
  std::uint32_t device;
};

class HostInode : public Inode {
 public:
  HostInode(const HostMount& mount, const HostTree::Facts& facts);
  ~HostInode() override { heap_free(path_text_, path_size_); }
  SysResult<void> set_path(std::string_view folder, std::string_view name);

  bool is_read_only() const final { return true; }
  Space space() final;
  SysResult<void> change(const AttributeChange&) final { return error(EROFS); }
  SysResult<std::size_t> get_xattr(std::string_view, char*, std::size_t) final { return error(ENODATA); }
  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) override;

  std::string_view path() const { return {path_text_, path_size_}; }
  const HostMount& mount() const { return mount_; }
  HostTree& tree() const { return *mount_.tree; }

 private:
  const HostMount& mount_;
  char* path_text_ = nullptr;
  std::size_t path_size_ = 0;
};

class HostLink final : public HostInode {
 public:
  using HostInode::HostInode;
  ~HostLink() override { heap_free(text_, text_size_); }
  SysResult<std::string_view> target() override;

 private:
  char* text_ = nullptr;
  std::size_t text_size_ = 0;
};

class HostRegular final : public HostInode {
 public:
  using HostInode::HostInode;
  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) override;
  SysResult<void> extend_map(std::uint64_t end, bool is_shared) override;
  // Where the contents are; asked for at the first call. To be mapped they are brought in whole.
  SysResult<HostTree::Content> content(HostTree::Wanted wanted);

 private:
  enum class Known : std::uint8_t { nothing, in_parts, whole };
  std::atomic<Known> known_ = Known::nothing;
  HostTree::Content content_;  // once it is known whole
};

class HostFolder final : public HostInode {
 public:
  using HostInode::HostInode;
  ~HostFolder() override;
  SysResult<Ref<Inode>> lookup(std::string_view name) override;
  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) override;
  // Entries for getdents(2); reads the folder when that was not done yet. The tree lock is held.
  SysResult<void> read_all();

 private:
  friend class HostFolderFile;
  // One name of a folder that was read, in names_.
  struct Entry {
    HostTree::Facts facts;
    std::uint32_t name_offset;
    std::uint32_t name_size;
    std::uint32_t hash;
    std::uint32_t next;  // of the same bucket: an index + 1
  };
  struct Reading;
  static void visit(void* context, std::string_view name, const HostTree::Facts& facts);
  static std::uint32_t hash_name(std::string_view name);
  std::string_view name_of(const Entry& entry) const { return {names_ + entry.name_offset, entry.name_size}; }
  SysResult<Ref<Inode>> make(std::string_view name, const HostTree::Facts& facts);
  SysResult<void> add(std::string_view name, const HostTree::Facts& facts);
  SysResult<void> index();

  bool is_read_ = false;
  std::uint32_t asked_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t count_max_ = 0;
  Entry* entries_ = nullptr;
  char* names_ = nullptr;
  std::uint32_t names_size_ = 0;
  std::uint32_t names_max_ = 0;
  std::uint32_t* buckets_ = nullptr;
  std::uint32_t bucket_count_ = 0;
};

class HostFolderFile final : public InodeFile {
 public:
  using InodeFile::InodeFile;
  bool is_seekable() const override { return true; }
  SysResult<std::uint64_t> read(Buffers&, std::uint64_t*) override { return error(EISDIR); }
  SysResult<std::uint64_t> list(Buffers& to, std::uint64_t* position) override;
};

class HostRegularFile final : public InodeFile {
 public:
  using InodeFile::InodeFile;
  bool is_seekable() const override { return true; }
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position) override;
  SysResult<std::uint64_t> seek_from_content(std::uint64_t offset, int whence) override;
  SysResult<MapSource> map(std::uint64_t offset, std::uint64_t size, bool is_shared, bool is_write) override;

 private:
  SysResult<std::uint64_t> read_parts(Buffers& to, std::uint64_t* position, std::uint64_t count);
  HostRegular& file() const { return static_cast<HostRegular&>(*inode()); }
};

}  // namespace belljar::kernel
