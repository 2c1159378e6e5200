#include "kernel/fs/fd_table.h"

#include <string.h>

#include "kernel/task/process.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kFirstSize = 64;

void let_go(File* file) {
  file->closed_by(static_cast<std::uint32_t>(current_process().pid));
  file->release();
}

}  // namespace

FdTable::~FdTable() {
  for (std::uint32_t i = 0; i < size_; ++i) {
    if (entries_[i].file != nullptr) let_go(entries_[i].file);
  }
  heap_free(entries_, size_ * sizeof(Entry));
}

SysResult<Ref<File>> FdTable::get(int fd) {
  LockGuard guard(lock_);
  const Entry* const entry = find(fd);
  if (entry == nullptr || entry->file->is_place()) return error(EBADF);
  return Ref<File>::of(entry->file);
}

SysResult<Ref<File>> FdTable::get_any(int fd) {
  LockGuard guard(lock_);
  const Entry* const entry = find(fd);
  if (entry == nullptr) return error(EBADF);
  return Ref<File>::of(entry->file);
}

SysResult<void> FdTable::grow(std::uint32_t size) {
  std::uint32_t new_size = size_ == 0 ? kFirstSize : size_;
  while (new_size < size) new_size *= 2;
  auto* const entries = static_cast<Entry*>(heap_allocate(new_size * sizeof(Entry)));
  if (entries == nullptr) return error(ENOMEM);
  if (size_ != 0) memcpy(entries, entries_, size_ * sizeof(Entry));
  heap_free(entries_, size_ * sizeof(Entry));
  entries_ = entries;
  size_ = new_size;
  return {};
}

SysResult<int> FdTable::add(Ref<File> file, CloseOnExec close_on_exec, int lowest) {
  LockGuard guard(lock_);
  const auto asked = static_cast<std::uint32_t>(lowest);
  std::uint32_t fd = asked > lowest_free_ ? asked : lowest_free_;
  while (fd < size_ && entries_[fd].file != nullptr) ++fd;
  if (fd >= limit_) return error(EMFILE);
  if (fd >= size_) TRY_VOID(grow(fd + 1));
  entries_[fd] = {file.leak(), close_on_exec == CloseOnExec::yes};
  if (asked <= lowest_free_) lowest_free_ = fd + 1;
  return static_cast<int>(fd);
}

SysResult<void> FdTable::set(int fd, Ref<File> file, CloseOnExec close_on_exec) {
  const auto index = static_cast<std::uint32_t>(fd);
  File* replaced = nullptr;
  {
    LockGuard guard(lock_);
    if (index >= limit_) return error(EBADF);
    if (index >= size_) TRY_VOID(grow(index + 1));
    replaced = entries_[index].file;
    entries_[index] = {file.leak(), close_on_exec == CloseOnExec::yes};
    if (index == lowest_free_) ++lowest_free_;
  }
  if (replaced != nullptr) let_go(replaced);
  return {};
}

SysResult<void> FdTable::close(int fd) {
  File* file = nullptr;
  {
    LockGuard guard(lock_);
    Entry* const entry = find(fd);
    if (entry == nullptr) return error(EBADF);
    file = entry->file;
    entry->file = nullptr;
    if (static_cast<std::uint32_t>(fd) < lowest_free_) lowest_free_ = static_cast<std::uint32_t>(fd);
  }
  let_go(file);
  return {};
}

void FdTable::close_range(std::uint32_t first, std::uint32_t last, bool only_mark) {
  for (std::uint32_t fd = first; fd <= last; ++fd) {
    File* file = nullptr;
    {
      LockGuard guard(lock_);
      if (fd >= size_) return;
      Entry& entry = entries_[fd];
      if (only_mark) {
        entry.close_on_exec = true;
        continue;
      }
      if (entry.file == nullptr) continue;
      file = entry.file;
      entry.file = nullptr;
      if (fd < lowest_free_) lowest_free_ = fd;
    }
    let_go(file);
  }
}

void FdTable::close_on_exec() {
  for (int fd = next_used(0); fd >= 0; fd = next_used(fd + 1)) {
    const auto closes = closes_on_exec(fd);
    if (closes && *closes) static_cast<void>(close(fd));
  }
}

SysResult<bool> FdTable::closes_on_exec(int fd) {
  LockGuard guard(lock_);
  const Entry* const entry = find(fd);
  if (entry == nullptr) return error(EBADF);
  return entry->close_on_exec;
}

SysResult<void> FdTable::set_closes_on_exec(int fd, CloseOnExec value) {
  LockGuard guard(lock_);
  Entry* const entry = find(fd);
  if (entry == nullptr) return error(EBADF);
  entry->close_on_exec = value == CloseOnExec::yes;
  return {};
}

SysResult<Ref<FdTable>> FdTable::copy() {
  auto table = make_ref<FdTable>();
  if (!table) return error(ENOMEM);
  LockGuard guard(lock_);
  std::uint32_t used = size_;
  while (used > 0 && entries_[used - 1].file == nullptr) --used;
  if (used > 0) TRY_VOID(table->grow(used));
  for (std::uint32_t i = 0; i < used; ++i) {
    table->entries_[i] = entries_[i];
    if (entries_[i].file != nullptr) entries_[i].file->acquire();
  }
  table->lowest_free_ = lowest_free_;
  table->limit_ = limit_;
  return table;
}

int FdTable::next_used(int fd) {
  LockGuard guard(lock_);
  for (auto i = static_cast<std::uint32_t>(fd); i < size_; ++i) {
    if (entries_[i].file != nullptr) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace belljar::kernel
