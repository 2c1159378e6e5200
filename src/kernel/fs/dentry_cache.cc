#include "kernel/fs/dentry_cache.h"

#include <string.h>

#include <algorithm>

#include "kernel/task/sandbox_facts.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kFirstBuckets = 1024;
// Beyond so many, names that nobody uses are dropped: with its inode one takes about a KiB.
constexpr std::uint32_t kDentriesMost = 200'000;
constexpr std::uint32_t kDentriesLeast = 4096;
constexpr std::uint64_t kMemoryPerDentry = 64U << 10;

std::uint32_t dentries_max() {
  const std::uint64_t wanted = sandbox_facts().memory_bytes / kMemoryPerDentry;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, kDentriesLeast, kDentriesMost));
}
// How many are looked at for each that is added.
constexpr int kLooks = 16;

bool is_watched(const Dentry& entry) {
  return entry.inode && entry.inode->watches != nullptr;
}

}  // namespace

Dentry::~Dentry() {
  drop_name();
  // A chain of removed folders can be as long as a program likes: no recursion.
  Dentry* folder = parent.leak();
  while (folder != nullptr && folder->drop()) {
    Dentry* const next = folder->parent.leak();
    folder->destroy();
    folder = next;
  }
}

void Dentry::drop_name() {
  if (name_text != short_name_) heap_free(name_text, name_size);
  name_text = nullptr;
  name_size = 0;
}

SysResult<void> Dentry::set_name(std::string_view name) {
  char* text = short_name_;
  if (name.size() > sizeof short_name_) {
    text = static_cast<char*>(heap_allocate(name.size()));
    if (text == nullptr) return error(ENOMEM);
  }
  drop_name();
  memcpy(text, name.data(), name.size());
  name_text = text;
  name_size = static_cast<std::uint8_t>(name.size());
  return {};
}

SysResult<void> DentryCache::grow() {
  const std::uint32_t bucket_count = bucket_count_ == 0 ? kFirstBuckets : bucket_count_ * 2;
  auto** const buckets = static_cast<Dentry**>(heap_allocate(bucket_count * sizeof(Dentry*)));
  if (buckets == nullptr) return error(ENOMEM);
  for (std::uint32_t i = 0; i < bucket_count_; ++i) {
    Dentry* entry = buckets_[i];
    while (entry != nullptr) {
      Dentry* const next = entry->hash_next_;
      Dentry*& bucket = buckets[entry->hash & (bucket_count - 1)];
      entry->hash_next_ = bucket;
      bucket = entry;
      entry = next;
    }
  }
  heap_free(buckets_, bucket_count_ * sizeof(Dentry*));
  buckets_ = buckets;
  bucket_count_ = bucket_count;
  return {};
}

SysResult<void> DentryCache::insert(Dentry& entry) {
  entry.acquire();
  if (count_ >= dentries_max()) drop_unused();
  if (count_ >= bucket_count_) {
    const auto grown = grow();
    if (!grown && bucket_count_ == 0) {
      entry.release();
      return grown;
    }
  }
  Dentry*& bucket = buckets_[entry.hash & (bucket_count_ - 1)];
  entry.hash_next_ = bucket;
  bucket = &entry;

  Dentry& folder = *entry.parent;
  entry.previous_sibling_ = nullptr;
  entry.next_sibling_ = folder.first_child_;
  if (folder.first_child_ != nullptr) folder.first_child_->previous_sibling_ = &entry;
  folder.first_child_ = &entry;

  if (oldest_ == nullptr) {
    oldest_ = entry.ring_next_ = entry.ring_previous_ = &entry;
  } else {
    entry.ring_next_ = oldest_;
    entry.ring_previous_ = oldest_->ring_previous_;
    oldest_->ring_previous_->ring_next_ = &entry;
    oldest_->ring_previous_ = &entry;
  }
  entry.is_cached = true;
  ++count_;
  return {};
}

void DentryCache::unlink(Dentry& entry) {
  Dentry** link = &buckets_[entry.hash & (bucket_count_ - 1)];
  while (*link != &entry) link = &(*link)->hash_next_;
  *link = entry.hash_next_;

  if (entry.next_sibling_ != nullptr) entry.next_sibling_->previous_sibling_ = entry.previous_sibling_;
  if (entry.previous_sibling_ != nullptr) {
    entry.previous_sibling_->next_sibling_ = entry.next_sibling_;
  } else {
    entry.parent->first_child_ = entry.next_sibling_;
  }

  if (oldest_ == &entry) oldest_ = entry.ring_next_ == &entry ? nullptr : entry.ring_next_;
  entry.ring_previous_->ring_next_ = entry.ring_next_;
  entry.ring_next_->ring_previous_ = entry.ring_previous_;
  entry.is_cached = false;
  --count_;
}

void DentryCache::remove(Dentry& entry) {
  if (!entry.is_cached) return;
  unlink(entry);
  entry.release();
}

void DentryCache::prune(Dentry& folder) {
  Dentry* entry = folder.first_child_;
  while (entry != nullptr) {
    Dentry* const next = entry->next_sibling_;
    if (entry->first_child_ == nullptr && entry->count() == 1) remove(*entry);
    entry = next;
  }
}

void DentryCache::drop_unused() {
  for (int i = 0; i < kLooks && oldest_ != nullptr; ++i) {
    Dentry& entry = *oldest_;
    oldest_ = entry.ring_next_;  // the hand moves on: what is kept is the newest now
    if (entry.was_used) {
      entry.was_used = false;
    } else if (entry.first_child_ == nullptr && entry.count() == 1 && !is_watched(entry)) {
      remove(entry);
    }
  }
}

}  // namespace belljar::kernel
