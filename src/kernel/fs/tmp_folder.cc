#include "kernel/fs/tmp_folder.h"

#include <string.h>

#include "kernel/fs/dentry_cache.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kFirstBuckets = 8;

std::uint32_t hash_name(std::string_view name) {
  std::uint64_t hash = 0x9e37'79b9'7f4a'7c15;
  for (const char character : name) hash = (hash ^ static_cast<unsigned char>(character)) * 0x0100'0000'01b3;
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

TmpFolder::~TmpFolder() {
  while (first_ != nullptr) {
    Entry* const entry = first_;
    first_ = entry->next;
    const std::size_t memory_size = sizeof(Entry) + entry->name_size;
    entry->~Entry();
    heap_free(entry, memory_size);
  }
  heap_free(buckets_, bucket_count_ * sizeof(Entry*));
}

TmpFolder::Entry** TmpFolder::find(std::string_view name, std::uint32_t hash) {
  if (buckets_ == nullptr) return nullptr;
  Entry** link = &buckets_[hash & (bucket_count_ - 1)];
  while (*link != nullptr && ((*link)->hash != hash || (*link)->name() != name)) link = &(*link)->hash_next;
  return *link == nullptr ? nullptr : link;
}

SysResult<Ref<Inode>> TmpFolder::lookup(std::string_view name) {
  Entry** const link = find(name, hash_name(name));
  if (link == nullptr) return error(ENOENT);
  return (*link)->inode;
}

SysResult<void> TmpFolder::grow() {
  const std::uint32_t bucket_count = bucket_count_ == 0 ? kFirstBuckets : bucket_count_ * 2;
  auto** const buckets = static_cast<Entry**>(heap_allocate(bucket_count * sizeof(Entry*)));
  if (buckets == nullptr) return error(ENOSPC);
  for (Entry* entry = first_; entry != nullptr; entry = entry->next) {
    Entry*& bucket = buckets[entry->hash & (bucket_count - 1)];
    entry->hash_next = bucket;
    bucket = entry;
  }
  heap_free(buckets_, bucket_count_ * sizeof(Entry*));
  buckets_ = buckets;
  bucket_count_ = bucket_count;
  return {};
}

SysResult<void> TmpFolder::add(std::string_view name, Ref<Inode> inode) {
  if (count_ >= bucket_count_) TRY_VOID(grow());
  void* const memory = heap_allocate(sizeof(Entry) + name.size());
  if (memory == nullptr) return error(ENOSPC);
  const std::uint32_t hash = hash_name(name);
  Entry*& bucket = buckets_[hash & (bucket_count_ - 1)];
  auto* const entry = new (memory)
      Entry{bucket, nullptr, last_, std::move(inode), next_cookie_, hash, static_cast<std::uint32_t>(name.size())};
  memcpy(entry->text(), name.data(), name.size());
  bucket = entry;
  (last_ == nullptr ? first_ : last_->next) = entry;
  last_ = entry;
  ++next_cookie_;
  ++count_;
  return {};
}

void TmpFolder::remove(std::string_view name) {
  Entry** const link = find(name, hash_name(name));
  if (link == nullptr) return;
  Entry* const entry = *link;
  *link = entry->hash_next;
  (entry->next == nullptr ? last_ : entry->next->previous) = entry->previous;
  (entry->previous == nullptr ? first_ : entry->previous->next) = entry->next;
  --count_;
  ++removals_;
  const std::size_t memory_size = sizeof(Entry) + entry->name_size;
  entry->~Entry();
  heap_free(entry, memory_size);
}

void TmpFolder::note_change(int links_added) {
  LockGuard guard(lock);
  links = static_cast<std::uint32_t>(static_cast<int>(links) + links_added);
  size = kEmptySize + count_ * kNameSize;
  touch_modify();
}

// Owner, group and mode of what is made in this folder (the set-group-id bit hands its group on).
SysResult<void> TmpFolder::take_over(TmpInode& inode, std::uint32_t file_mode, const Credentials& who) {
  TRY_VOID(own_space()->take_inode());
  inode.is_counted = true;
  inode.uid = who.fsuid;
  const bool hands_on = (mode & S_ISGID) != 0;
  inode.gid = hands_on ? gid : who.fsgid;
  inode.mode = file_mode | (hands_on && S_ISDIR(file_mode) ? S_ISGID : 0U);
  return {};
}

SysResult<Ref<Inode>> TmpFolder::create(std::string_view name, std::uint32_t file_mode, std::uint64_t device_id,
                                        const Credentials& who) {
  Ref<TmpInode> made;
  if (S_ISDIR(file_mode)) {
    made = make_ref<TmpFolder>(own_space(), device, file_mode);
  } else if (S_ISREG(file_mode)) {
    made = make_ref<TmpFile>(own_space(), device, file_mode);
  } else {
    made = make_ref<TmpInode>(own_space(), device, file_mode);
  }
  if (!made) return error(ENOSPC);
  TRY_VOID(take_over(*made, file_mode, who));
  made->rdev = device_id;
  if (S_ISDIR(file_mode)) {
    made->links = 2;
    made->size = TmpFolder::kEmptySize;
  }
  TRY_VOID(add(name, made));
  note_change(S_ISDIR(file_mode) ? 1 : 0);
  return Ref<Inode>(std::move(made));
}

SysResult<Ref<Inode>> TmpFolder::make_symlink(std::string_view name, std::string_view target, const Credentials& who) {
  auto made = make_ref<TmpLink>(own_space(), device);
  if (!made) return error(ENOSPC);
  TRY_VOID(made->set_target(target));
  TRY_VOID(take_over(*made, S_IFLNK | 0777, who));
  TRY_VOID(add(name, made));
  note_change(0);
  return Ref<Inode>(std::move(made));
}

SysResult<Ref<Inode>> TmpFolder::make_nameless(std::uint32_t file_mode, const Credentials& who) {
  auto made = make_ref<TmpFile>(own_space(), device, file_mode);
  if (!made) return error(ENOSPC);
  TRY_VOID(take_over(*made, file_mode, who));
  made->links = 0;
  return Ref<Inode>(std::move(made));
}

SysResult<void> TmpFolder::link(std::string_view name, Inode& inode) {
  if (inode.links == 0 && !(inode.is_regular() && static_cast<TmpFile&>(inode).is_linkable())) return error(ENOENT);
  TRY_VOID(add(name, Ref<Inode>::of(&inode)));
  note_change(0);
  LockGuard guard(inode.lock);
  ++inode.links;
  static_cast<TmpInode&>(inode).touch_change();
  return {};
}

SysResult<void> TmpFolder::unlink(std::string_view name, Inode& inode) {
  const Ref<Inode> kept = Ref<Inode>::of(&inode);
  remove(name);
  note_change(0);
  LockGuard guard(inode.lock);
  --inode.links;
  static_cast<TmpInode&>(inode).touch_change();
  return {};
}

SysResult<void> TmpFolder::remove_folder(std::string_view name, Inode& inode) {
  const Ref<Inode> kept = Ref<Inode>::of(&inode);
  remove(name);
  note_change(-1);
  LockGuard guard(inode.lock);
  inode.links = 0;
  static_cast<TmpInode&>(inode).touch_change();
  return {};
}

SysResult<void> TmpFolder::rename(std::string_view from, Inode& moved, Inode& to_folder, std::string_view to,
                                  Inode* replaced, bool exchange) {
  auto& target = static_cast<TmpFolder&>(to_folder);
  const int moved_links = moved.is_folder() ? 1 : 0;
  if (exchange) {
    Entry* const one = *find(from, hash_name(from));
    Entry* const other = *target.find(to, hash_name(to));
    std::swap(one->inode, other->inode);
    const int replaced_links = replaced->is_folder() ? 1 : 0;
    note_change(replaced_links - moved_links);
    target.note_change(moved_links - replaced_links);
  } else {
    const Ref<Inode> kept = Ref<Inode>::of(&moved);
    if (replaced != nullptr) {
      const auto removed = replaced->is_folder() ? target.remove_folder(to, *replaced) : target.unlink(to, *replaced);
      if (!removed) return removed;
    }
    TRY_VOID(target.add(to, kept));
    remove(from);
    note_change(-moved_links);
    target.note_change(moved_links);
  }
  LockGuard guard(moved.lock);
  static_cast<TmpInode&>(moved).touch_change();
  return {};
}

SysResult<Ref<File>> TmpFolder::open(Ref<Dentry> dentry, std::uint32_t) {
  auto file = make_ref<TmpFolderFile>(Ref<Inode>::of(this), std::move(dentry));
  if (!file) return error(ENOMEM);
  return Ref<File>(std::move(file));
}

SysResult<std::uint64_t> TmpFolderFile::list(Buffers& to, std::uint64_t* position) {
  auto& folder = static_cast<TmpFolder&>(*inode());
  LockGuard guard(tree_lock());
  EntryWriter writer(to);
  std::uint64_t at = *position;
  if (dentry()->is_unlinked) return error(ENOENT);
  if (at == 0 && TRY(writer.add(folder.number, S_IFDIR, ".", 1))) at = 1;
  if (at == 1) {
    const Dentry* up = dentry();
    while (!up->parent && up->covers != nullptr) up = up->covers;
    const std::uint64_t number = up->parent ? up->parent->inode->number : folder.number;
    if (TRY(writer.add(number, S_IFDIR, "..", 3))) at = 3;
  }
  if (at >= 3) {
    const bool is_hint_good = hint_cookie_ == at && hint_removals_ == folder.removals_ && hint_ != nullptr;
    TmpFolder::Entry* entry = is_hint_good ? hint_ : folder.first_;
    while (entry != nullptr && entry->cookie < at) entry = entry->next;
    for (; entry != nullptr; entry = entry->next) {
      if (!TRY(writer.add(entry->inode->number, entry->inode->mode, entry->name(), entry->cookie + 1))) break;
      at = entry->cookie + 1;
    }
    hint_ = entry;
    hint_cookie_ = at;
    hint_removals_ = folder.removals_;
  }
  const std::uint64_t written = TRY(writer.finish());
  *position = at;
  return written;
}

}  // namespace belljar::kernel
