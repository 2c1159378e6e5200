#include "kernel/fs/xattrs.h"

#include <string.h>
#include <sys/xattr.h>

#include "kernel/arena/heap.h"

namespace belljar::kernel {
namespace {

// Of one inode in all, so that attributes can't fill the kernel's heap.
constexpr std::size_t kTotalMax = 64U << 10;

}  // namespace

Xattrs::~Xattrs() {
  while (first_ != nullptr) {
    Entry* const entry = first_;
    first_ = entry->next;
    heap_free(entry, entry->memory_size());
  }
}

Xattrs::Entry** Xattrs::find(std::string_view name) {
  Entry** link = &first_;
  while (*link != nullptr && (*link)->name() != name) link = &(*link)->next;
  return link;
}

SysResult<std::size_t> Xattrs::get(std::string_view name, char* to, std::size_t size) const {
  Entry* const entry = *const_cast<Xattrs*>(this)->find(name);
  if (entry == nullptr) return error(ENODATA);
  if (size == 0) return entry->value_size;
  if (size < entry->value_size) return error(ERANGE);
  if (entry->value_size != 0) memcpy(to, entry->value().data(), entry->value_size);
  return entry->value_size;
}

SysResult<void> Xattrs::set(std::string_view name, std::string_view value, int flags) {
  Entry** const link = find(name);
  if (*link != nullptr && (flags & XATTR_CREATE) != 0) return error(EEXIST);
  if (*link == nullptr && (flags & XATTR_REPLACE) != 0) return error(ENODATA);
  const std::size_t size = sizeof(Entry) + name.size() + value.size();
  if (total_ + size > kTotalMax) return error(ENOSPC);
  void* const memory = heap_allocate(size);
  if (memory == nullptr) return error(ENOSPC);
  auto* const entry =
      new (memory) Entry{first_, static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(value.size())};
  memcpy(entry->text(), name.data(), name.size());
  if (!value.empty()) memcpy(entry->text() + name.size(), value.data(), value.size());
  if (*link != nullptr) static_cast<void>(remove(name));
  entry->next = first_;
  first_ = entry;
  total_ += size;
  return {};
}

SysResult<std::size_t> Xattrs::list(char* to, std::size_t size) const {
  std::size_t used = 0;
  for (Entry* entry = first_; entry != nullptr; entry = entry->next) {
    if (size != 0) {
      if (used + entry->name_size + 1 > size) return error(ERANGE);
      memcpy(to + used, entry->text(), entry->name_size);
      to[used + entry->name_size] = '\0';
    }
    used += entry->name_size + 1;
  }
  return used;
}

SysResult<void> Xattrs::remove(std::string_view name) {
  Entry** const link = find(name);
  Entry* const entry = *link;
  if (entry == nullptr) return error(ENODATA);
  *link = entry->next;
  total_ -= entry->memory_size();
  heap_free(entry, entry->memory_size());
  return {};
}

}  // namespace belljar::kernel
