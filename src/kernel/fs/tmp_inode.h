// The inodes of tmpfs; of this folder alone.
#pragma once

#include <string_view>

#include "kernel/fs/file_data.h"
#include "kernel/fs/inode.h"
#include "kernel/fs/tmpfs.h"
#include "kernel/fs/xattrs.h"

namespace belljar::broker {
class ArenaReader;  // of what the program has left, when all its processes are gone
}

namespace belljar::kernel {

// What all have: a place in the space, times, attributes.
class TmpInode : public Inode {
 public:
  TmpInode(Ref<TmpSpace> space, std::uint32_t device_number, std::uint32_t file_mode);
  ~TmpInode() override;

  SysResult<void> change(const AttributeChange& change) override;
  Space space() override { return space_->space(); }
  SysResult<std::size_t> get_xattr(std::string_view name, char* to, std::size_t size) override;
  SysResult<void> set_xattr(std::string_view name, std::string_view value, int flags) override;
  SysResult<std::size_t> list_xattr(char* to, std::size_t size) override;
  SysResult<void> remove_xattr(std::string_view name) override;
  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) override;

  // It was taken out of the space's count of inodes.
  bool is_counted = false;

  // Under `lock`.
  // Who changes a program's contents or owner takes its set-id bits away. They give no rights here; programs look at
  // them.
  void drop_set_ids() {
    if (is_folder()) return;
    mode &= ~static_cast<std::uint32_t>(S_ISUID | ((mode & S_IXGRP) != 0 ? S_ISGID : 0));
  }
  void touch_change() { change_time = now(); }
  void touch_modify() { modify_time = change_time = now(); }

 protected:
  // Sets the size; `lock` is held.
  virtual SysResult<void> resize(std::uint64_t size);
  const Ref<TmpSpace>& own_space() const { return space_; }

 private:
  Ref<TmpSpace> space_;
  Xattrs xattrs_;
};

class TmpLink final : public TmpInode {
 public:
  TmpLink(Ref<TmpSpace> space, std::uint32_t device_number)
      : TmpInode(std::move(space), device_number, S_IFLNK | 0777) {}
  ~TmpLink() override { heap_free(text_, size); }
  SysResult<void> set_target(std::string_view text);
  SysResult<std::string_view> target() override { return std::string_view(text_, size); }

 private:
  friend class ::belljar::broker::ArenaReader;
  char* text_ = nullptr;
};

// A regular file: its pages lie in one range of the arena.
class TmpFile final : public TmpInode {
 public:
  using TmpInode::TmpInode;
  ~TmpFile() override;

  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) override;
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t position);
  // `position` is that of the end for `appends`. Returns how much; moves the position.
  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t* position, bool appends);
  SysResult<MapSource> map(std::uint64_t offset, std::uint64_t map_size, bool is_shared, bool may_write);
  SysResult<void> extend_map(std::uint64_t end, bool is_shared) override;
  SysResult<std::uint64_t> seek(std::uint64_t offset, int whence);
  SysResult<void> allocate(int how, std::uint64_t offset, std::uint64_t count);
  std::uint32_t seals();
  // `is_mapped`: somewhere, as far as is known.
  SysResult<void> add_seals(std::uint32_t seals, bool is_mapped);
  std::atomic<std::uint32_t> open_count = 0;    // of open files
  std::atomic<std::uint32_t> writer_count = 0;  // and of those that may write, but for memory files
  bool is_open_for_writing() const override { return writer_count != 0; }
  // Of memfd_create(2): seals can be added.
  void allow_seals() { seals_ = 0; }
  void let_link() override { is_linkable_ = true; }
  bool is_linkable() const { return is_linkable_; }

 protected:
  SysResult<void> resize(std::uint64_t new_size) override;

 private:
  friend class ::belljar::broker::ArenaReader;
  bool has_page(std::uint64_t page) const { return page < bit_count_ && (bits()[page / 64] >> (page % 64) & 1) != 0; }
  const std::uint64_t* bits() const { return bit_count_ <= 64 ? &few_bits_ : bits_; }
  std::uint64_t* bits() { return bit_count_ <= 64 ? &few_bits_ : bits_; }
  void set_pages(std::uint64_t first, std::uint64_t end, bool value);
  std::uint64_t count_pages(std::uint64_t first, std::uint64_t end) const;
  // The first page from `first` on, before `end`, that is there or not; `end`: none.
  std::uint64_t next_page(std::uint64_t first, std::uint64_t end, bool is_there) const;
  SysResult<void> grow_bits(std::uint64_t pages);
  SysResult<void> make_room(std::uint64_t pages);
  SysResult<void> move_to(DataRange* range);
  // Before pages up to `end` are reached through a mapping: what was another file's is cleared; what a shared mapping
  // can write to is charged.
  SysResult<void> open_to_maps(std::uint64_t first, std::uint64_t end, bool may_write_shared);
  // Makes sure that pages are there, as many of [first, end) as the space gives; new ones are zeros. Returns the end of
  // what is there.
  std::uint64_t provide(std::uint64_t first, std::uint64_t end);
  void drop_pages(std::uint64_t first, std::uint64_t end);
  void drop_all();
  void clear_bytes(std::uint64_t begin, std::uint64_t end);
  SysResult<void> punch(std::uint64_t begin, std::uint64_t end);
  // Notes it, where mappings must follow.
  void set_size(std::uint64_t new_size);
  // Before the size grows over what shared mappings could write to.
  SysResult<void> reveal(std::uint64_t new_size);

  DataRange* range_ = nullptr;
  DataRange* retired_ = nullptr;  // earlier ranges that are still mapped
  std::uint64_t few_bits_ = 0;
  std::uint64_t* bits_ = nullptr;
  std::uint64_t bit_count_ = 64;  // pages that the bits tell of
  std::uint64_t shared_end_ = 0;  // pages below it are, or will be, reached through shared mappings
  std::uint32_t seals_ = 1;       // F_SEAL_SEAL
  std::uint64_t used_end_ = 0;    // pages of the range from there on were never written to
  bool is_linkable_ = false;
  bool is_mapped_ = false;
  bool is_shared_ = false;  // in some mapping: the range can't move any more
};

}  // namespace belljar::kernel
