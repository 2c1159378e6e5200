#include "tiers/kernel/cache_index.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace belljar::content_cache {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15;
  return hash ^ (hash >> 29);
}

std::uint32_t checksum_of(const Record& record) {
  static_assert(sizeof(Record) % sizeof(std::uint64_t) == 0);
  std::uint64_t words[sizeof(Record) / sizeof(std::uint64_t)];
  std::memcpy(words, &record, sizeof record);
  std::uint64_t hash = sizeof record;
  for (const std::uint64_t word : words) hash = mix(hash, word);
  return static_cast<std::uint32_t>(hash >> 32);
}

bool is_inside(std::uint64_t offset, std::uint64_t size) {
  return offset >= kContentsBegin && offset % kernel::kPageSize == 0 && offset <= kBudget && size <= kBudget - offset;
}

bool is_sound(const Record& record, std::uint32_t checksum) {
  const PatchedText& text = record.text;
  return checksum_of(record) == checksum && is_inside(record.offset, record.key.size) &&
         (text.size == 0 || (is_inside(text.offset, 0) && is_inside(text.source, text.size)));
}

std::uint32_t first_place(const Key& key) {
  return static_cast<std::uint32_t>(mix(mix(1, key.device), key.inode) >> 20) % kEntriesMax;
}

}  // namespace

Key key_of(const struct stat& status) {
  return {status.st_dev,         status.st_ino,         static_cast<std::uint64_t>(status.st_size),
          status.st_mtim.tv_sec, status.st_ctim.tv_sec, status.st_mtim.tv_nsec,
          status.st_ctim.tv_nsec};
}

SysResult<Index> Index::map(int file, bool is_writable) {
  void* const mapped =
      ::mmap(nullptr, sizeof(Header), is_writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return std::unexpected(Errno{errno});
  return Index(static_cast<Header*>(mapped));
}

std::optional<Record> Index::find(const Key& key) const {
  for (std::uint32_t i = 0; i < kEntriesMax; ++i) {
    const Entry& entry = header_->entries[(first_place(key) + i) % kEntriesMax];
    if (entry.is_there.load(std::memory_order_acquire) == 0) return std::nullopt;
    if (entry.record.key == key && is_sound(entry.record, entry.checksum)) return entry.record;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Index::take(std::uint64_t size) {
  std::uint64_t begin = header_->used.load();
  if (begin < kContentsBegin) begin = kContentsBegin;
  begin = kernel::page_up(begin);
  if (begin > kBudget || size > kBudget - begin || header_->entry_count.load() >= kEntriesMax / 2) {
    header_->is_full.store(1);
    return std::nullopt;
  }
  header_->used.store(kernel::page_up(begin + size));
  return begin;
}

bool Index::add(const Record& record) {
  if (header_->entry_count.load() >= kEntriesMax / 2) {
    header_->is_full.store(1);
    return false;
  }
  std::uint32_t place = first_place(record.key);
  while (header_->entries[place].is_there.load() != 0) place = (place + 1) % kEntriesMax;
  Entry& entry = header_->entries[place];
  entry.record = record;
  entry.checksum = checksum_of(record);
  entry.is_there.store(1, std::memory_order_release);
  header_->entry_count.fetch_add(1);
  return true;
}

}  // namespace belljar::content_cache
