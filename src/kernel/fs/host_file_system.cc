#include <linux/magic.h>
#include <string.h>
#include <unistd.h>

#include "kernel/fs/dentry_cache.h"
#include "kernel/fs/host_inode.h"
#include "kernel/ipc/pipe.h"
#include "kernel/task/process.h"

namespace belljar::kernel {
namespace {

// After so many names of one folder it is read as a whole.
constexpr std::uint32_t kAskedMax = 8;
constexpr std::uint64_t kSpaceBlocks = 1ULL << 28;  // a read-only file system's size says nothing: 1 TiB

SysResult<Ref<Inode>> make_inode(const HostMount& mount, std::string_view folder, std::string_view name,
                                 const HostTree::Facts& facts) {
  Ref<HostInode> made;
  switch (facts.mode & S_IFMT) {
    case S_IFDIR:
      made = make_ref<HostFolder>(mount, facts);
      break;
    case S_IFREG:
      made = make_ref<HostRegular>(mount, facts);
      break;
    case S_IFLNK:
      made = make_ref<HostLink>(mount, facts);
      break;
    default:
      made = make_ref<HostInode>(mount, facts);
      break;
  }
  if (!made) return error(ENOMEM);
  TRY_VOID(made->set_path(folder, name));
  return Ref<Inode>(std::move(made));
}

// Makes room for one more of what `size` bytes each were taken for.
template <typename T>
SysResult<void> make_room(T*& items, std::uint32_t& items_max, std::uint32_t needed) {
  if (needed <= items_max) return {};
  std::uint32_t wanted = items_max == 0 ? 64 : items_max * 2;
  while (wanted < needed) wanted *= 2;
  auto* const grown = static_cast<T*>(heap_allocate(wanted * sizeof(T)));
  if (grown == nullptr) return error(ENOMEM);
  if (items != nullptr) memcpy(static_cast<void*>(grown), items, items_max * sizeof(T));
  heap_free(items, items_max * sizeof(T));
  items = grown;
  items_max = wanted;
  return {};
}

// `to` has room for both and a slash; the root's own path is empty.
void join_path(char* to, std::string_view folder, std::string_view name) {
  for (const char character : folder) *to++ = character;
  if (!folder.empty() && !name.empty()) *to++ = '/';
  for (const char character : name) *to++ = character;
}

}  // namespace

HostInode::HostInode(const HostMount& mount, const HostTree::Facts& facts) : mount_(mount) {
  number = facts.number;
  device = facts.device != 0 ? facts.device : mount.device;
  mode = facts.mode;
  uid = facts.uid;
  gid = facts.gid;
  links = facts.links;
  size = facts.size;
  blocks = facts.blocks;
  rdev = facts.rdev;
  access_time = facts.access_time;
  modify_time = facts.modify_time;
  change_time = birth_time = facts.change_time;
}

SysResult<void> HostInode::set_path(std::string_view folder, std::string_view name) {
  const std::size_t slash = folder.empty() || name.empty() ? 0 : 1;
  path_size_ = folder.size() + slash + name.size();
  if (path_size_ >= kPathMax) return error(ENAMETOOLONG);
  if (path_size_ == 0) return {};
  path_text_ = static_cast<char*>(heap_allocate(path_size_));
  if (path_text_ == nullptr) return error(ENOMEM);
  join_path(path_text_, folder, name);
  return {};
}

Inode::Space HostInode::space() {
  Space result;
  result.magic = OVERLAYFS_SUPER_MAGIC;
  result.blocks = kSpaceBlocks;
  result.is_read_only = true;
  return result;
}

SysResult<Ref<File>> HostInode::open(Ref<Dentry> dentry, std::uint32_t flags) {
  if (S_ISFIFO(mode)) return open_fifo(*this, flags, std::move(dentry));
  return error(S_ISSOCK(mode) ? ENXIO : EACCES);
}

SysResult<std::string_view> HostLink::target() {
  LockGuard guard(lock);
  if (text_ == nullptr) {
    auto* const block = static_cast<char*>(heap_allocate(kPathMax));
    if (block == nullptr) return error(ENOMEM);
    const auto length = tree().read_link(path(), block, kPathMax);
    if (length && *length != 0 && *length <= kPathMax) {
      text_ = static_cast<char*>(heap_allocate(*length));
      if (text_ != nullptr) {
        memcpy(text_, block, *length);
        text_size_ = *length;
      }
    }
    heap_free(block, kPathMax);
    if (!length) return std::unexpected(length.error());
    if (text_ == nullptr) return error(*length == 0 ? ENOENT : ENOMEM);
  }
  return std::string_view(text_, text_size_);
}

SysResult<HostTree::Content> HostRegular::content(HostTree::Wanted wanted) {
  const auto parts = [this] { return HostTree::Content{.size = size, .is_in_parts = true}; };
  Known known = known_.load(std::memory_order_acquire);
  if (known == Known::whole) return content_;
  if (known == Known::in_parts && wanted == HostTree::Wanted::any) return parts();
  LockGuard guard(lock);
  known = known_.load();
  if (known == Known::whole) return content_;
  if (known == Known::in_parts && wanted == HostTree::Wanted::any) return parts();
  const HostTree::Content found = TRY(tree().fetch(path(), wanted));
  if (found.is_in_parts ? wanted == HostTree::Wanted::whole
                        : found.offset > kContentsEnd || found.size > kContentsEnd - found.offset) {
    return error(EIO);
  }
  size = found.size;
  if (!found.is_in_parts) content_ = found;
  known_.store(found.is_in_parts ? Known::in_parts : Known::whole, std::memory_order_release);
  return found;
}

SysResult<void> HostRegular::extend_map(std::uint64_t end, bool) {
  const HostTree::Content found = TRY(content(HostTree::Wanted::whole));
  return end <= page_up(found.size) ? SysResult<void>() : error(ENOMEM);
}

SysResult<Ref<File>> HostRegular::open(Ref<Dentry> dentry, std::uint32_t) {
  auto file = make_ref<HostRegularFile>(Ref<Inode>::of(this), std::move(dentry));
  if (!file) return error(ENOMEM);
  return Ref<File>(std::move(file));
}

// Part by part, between which a signal is seen. What the file has lost since it was first looked at is its end.
SysResult<std::uint64_t> HostRegularFile::read_parts(Buffers& to, std::uint64_t* position, std::uint64_t count) {
  to.cut(count);
  std::uint64_t done = 0;
  while (to.left() != 0) {
    const auto part = file().tree().read(file().path(), *position, to);
    if (!part && done == 0) return std::unexpected(part.error());
    if (!part || *part == 0) break;
    *position += *part;
    done += *part;
    if (has_signal()) break;
  }
  return done;
}

SysResult<std::uint64_t> HostRegularFile::read(Buffers& to, std::uint64_t* position) {
  const HostTree::Content content = TRY(file().content(HostTree::Wanted::any));
  if (*position >= content.size) return 0;
  const std::uint64_t rest = content.size - *position;
  const std::uint64_t count = to.left() < rest ? to.left() : rest;
  if (content.is_in_parts) return read_parts(to, position, count);
  TRY_VOID(to.put(reinterpret_cast<const char*>(kContentBase + content.offset + *position), count));
  *position += count;
  return count;
}

SysResult<std::uint64_t> HostRegularFile::seek_from_content(std::uint64_t offset, int whence) {
  const HostTree::Content content = TRY(file().content(HostTree::Wanted::any));
  if (whence == SEEK_END) return content.size;
  if (offset >= content.size) return error(ENXIO);
  return whence == SEEK_DATA ? offset : content.size;
}

SysResult<MapSource> HostRegularFile::map(std::uint64_t offset, std::uint64_t, bool is_shared, bool is_write) {
  if (is_shared && is_write) return error(EACCES);
  const HostTree::Content content = TRY(file().content(HostTree::Wanted::whole));
  MapSource source;
  source.kind = MapSource::Kind::content;
  source.offset = content.offset + offset;
  source.size = offset < content.size ? page_up(content.size) - offset : 0;
  source.image_id = content.image_id;
  source.text = content.text;
  return source;
}

SysResult<Ref<Inode>> make_host_file_system(HostTree& tree, std::string_view path) {
  auto* const mount = make_object<HostMount>(&tree, new_device_number());
  if (mount == nullptr) return error(ENOMEM);
  const HostTree::Facts facts = TRY(tree.stat(path));
  return make_inode(*mount, "", path, facts);
}

// Folders.

HostFolder::~HostFolder() {
  heap_free(entries_, count_max_ * sizeof(Entry));
  heap_free(names_, names_max_);
  heap_free(buckets_, bucket_count_ * sizeof(std::uint32_t));
}

std::uint32_t HostFolder::hash_name(std::string_view name) {
  std::uint64_t hash = 0x9e37'79b9'7f4a'7c15;
  for (const char character : name) hash = (hash ^ static_cast<unsigned char>(character)) * 0x0100'0000'01b3;
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

SysResult<void> HostFolder::add(std::string_view name, const HostTree::Facts& facts) {
  if (name.empty() || name.size() > kNameMax) return {};
  TRY_VOID(make_room(entries_, count_max_, count_ + 1));
  TRY_VOID(make_room(names_, names_max_, names_size_ + static_cast<std::uint32_t>(name.size())));
  memcpy(names_ + names_size_, name.data(), name.size());
  entries_[count_] = {facts, names_size_, static_cast<std::uint32_t>(name.size()), hash_name(name), 0};
  names_size_ += static_cast<std::uint32_t>(name.size());
  ++count_;
  return {};
}

struct HostFolder::Reading {
  HostFolder& folder;
  SysResult<void> result;
};

void HostFolder::visit(void* context, std::string_view name, const HostTree::Facts& facts) {
  auto& reading = *static_cast<Reading*>(context);
  if (reading.result) reading.result = reading.folder.add(name, facts);
}

SysResult<void> HostFolder::index() {
  bucket_count_ = 8;
  while (bucket_count_ < count_) bucket_count_ *= 2;
  buckets_ = static_cast<std::uint32_t*>(heap_allocate(bucket_count_ * sizeof(std::uint32_t)));
  if (buckets_ == nullptr) return error(ENOMEM);
  for (std::uint32_t i = 0; i < count_; ++i) {
    std::uint32_t& bucket = buckets_[entries_[i].hash & (bucket_count_ - 1)];
    entries_[i].next = bucket;
    bucket = i + 1;
  }
  return {};
}

SysResult<void> HostFolder::read_all() {
  if (is_read_) return {};
  count_ = names_size_ = 0;
  Reading reading{*this, {}};
  TRY_VOID(tree().list(path(), &HostFolder::visit, &reading));
  TRY_VOID(reading.result);
  TRY_VOID(index());
  is_read_ = true;
  return {};
}

SysResult<Ref<Inode>> HostFolder::make(std::string_view name, const HostTree::Facts& facts) {
  return make_inode(mount(), path(), name, facts);
}

SysResult<Ref<Inode>> HostFolder::lookup(std::string_view name) {
  if (!is_read_ && asked_ >= kAskedMax) {
    // A folder that can be searched and not read (mode 0711 on the host) is asked name by name for good.
    if (!read_all()) asked_ = 0;
  }
  if (!is_read_) {
    ++asked_;
    char text[kPathMax];
    const std::size_t slash = path().empty() ? 0 : 1;
    const std::size_t text_size = path().size() + slash + name.size();
    if (text_size >= sizeof text) return error(ENAMETOOLONG);
    join_path(text, path(), name);
    const HostTree::Facts facts = TRY(tree().stat({text, text_size}));
    return make(name, facts);
  }
  const std::uint32_t hash = hash_name(name);
  for (std::uint32_t i = buckets_[hash & (bucket_count_ - 1)]; i != 0; i = entries_[i - 1].next) {
    const Entry& entry = entries_[i - 1];
    if (entry.hash == hash && name_of(entry) == name) return make(name, entry.facts);
  }
  return error(ENOENT);
}

SysResult<Ref<File>> HostFolder::open(Ref<Dentry> dentry, std::uint32_t) {
  auto file = make_ref<HostFolderFile>(Ref<Inode>::of(this), std::move(dentry));
  if (!file) return error(ENOMEM);
  return Ref<File>(std::move(file));
}

SysResult<std::uint64_t> HostFolderFile::list(Buffers& to, std::uint64_t* position) {
  auto& folder = static_cast<HostFolder&>(*inode());
  {
    LockGuard guard(tree_lock());
    TRY_VOID(folder.read_all());
  }
  // What was read never changes: no lock from here on.
  EntryWriter writer(to);
  std::uint64_t at = *position;
  if (at == 0 && TRY(writer.add(folder.number, S_IFDIR, ".", 1))) at = 1;
  if (at == 1) {
    const Dentry& up = dentry()->parent ? *dentry()->parent : *dentry();
    if (TRY(writer.add(up.inode->number, S_IFDIR, "..", 2))) at = 2;
  }
  for (; at >= 2 && at - 2 < folder.count_; ++at) {
    const HostFolder::Entry& entry = folder.entries_[at - 2];
    if (!TRY(writer.add(entry.facts.number, entry.facts.mode, folder.name_of(entry), at + 1))) break;
  }
  const std::uint64_t written = TRY(writer.finish());
  *position = at;
  return written;
}

}  // namespace belljar::kernel
