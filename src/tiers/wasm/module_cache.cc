#include "tiers/wasm/module_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/sha256.h"
#include "image/cache_folder.h"
#include "image/host_image.h"
#include "spec/errors.h"

namespace belljar::wasm {
namespace {

constexpr std::size_t kDigestBytes = 64;
constexpr std::size_t kEntriesAfter = 192;
constexpr std::string_view kTemporary = ".new";

std::unexpected<Error> cannot(const std::string& path, std::string_view what, int error) {
  return fail(ErrorCode::no_resources, fmt::format("{}: can't {}: {}", path, what, errno_text(error)));
}

// Of the entry's name too, so that one can't stand for another.
std::string digest_of(const std::string& key, std::string_view compiled) {
  Sha256 hash;
  hash.update(key);
  hash.update(compiled);
  return hash.finish();
}

bool is_whole(int file, std::uint64_t size, const std::string& key) {
  if (size <= kDigestBytes || size > ModuleCache::kEntryBytesMax + kDigestBytes) return false;
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  if (address == MAP_FAILED) return false;
  const std::string_view all(static_cast<const char*>(address), size);
  const std::string_view compiled = all.substr(0, size - kDigestBytes);
  const bool is_same = digest_of(key, compiled) == all.substr(size - kDigestBytes);
  ::munmap(address, size);
  return is_same;
}

struct Entry {
  std::string name;
  timespec made;
  std::uint64_t bytes;
};

std::vector<Entry> entries_of(int folder_fd) {
  std::vector<Entry> entries;
  auto folder = open_at(folder_fd, ".", O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(folder ? ::fdopendir(folder->release()) : nullptr, ::closedir);
  if (!stream) return entries;
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    struct stat status{};
    if (::fstatat(folder_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(status.st_mode)) continue;
    entries.push_back({entry->d_name, status.st_mtim, static_cast<std::uint64_t>(status.st_size)});
  }
  return entries;
}

// Nothing that somebody writes, or has found and goes on to mount.
bool remove_unused(int folder_fd, const std::string& name) {
  const auto file = open_at(folder_fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (file && ::flock(file->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return ::unlinkat(folder_fd, name.c_str(), 0) == 0;
}

}  // namespace

Result<ModuleCache> ModuleCache::open() {
  const std::string above = TRY(cache_folder());
  TRY(open_cache_folder(above));
  return open_at(above + "/wasm");
}

Result<ModuleCache> ModuleCache::open_at(const std::string& path) {
  Fd folder = TRY(open_private_folder(path, {.what = "the folder of compiled modules",
                                             .remedy = "make it, or set XDG_CACHE_HOME to a folder that you can write",
                                             .mode = 0700}));
  return ModuleCache(std::move(folder), path);
}

bool ModuleCache::has(const std::string& key) const {
  return ::faccessat(folder_.get(), key.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

std::optional<CachedModule> ModuleCache::find(const std::string& key) const {
  auto file = belljar::open_at(folder_.get(), key.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat status{};
  if (!file) return std::nullopt;
  ::flock(file->get(), LOCK_SH);
  if (::fstat(file->get(), &status) != 0 || status.st_nlink == 0) return std::nullopt;  // removed before it was locked
  const bool is_ours =
      S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (is_ours && is_whole(file->get(), static_cast<std::uint64_t>(status.st_size), key)) {
    return CachedModule{std::move(*file), path_ + "/" + key};
  }
  remove_damaged(key, *file);
  return std::nullopt;
}

// Only what was looked at: another may have made the entry again meanwhile.
void ModuleCache::remove_damaged(const std::string& key, const Fd& file) const {
  const Fd alone = lock();
  struct stat seen{};
  struct stat now{};
  const bool is_same = ::fstat(file.get(), &seen) == 0 &&
                       ::fstatat(folder_.get(), key.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
                       seen.st_dev == now.st_dev && seen.st_ino == now.st_ino;
  if (is_same) ::unlinkat(folder_.get(), key.c_str(), 0);
}

// The one lock under which names come and go.
Fd ModuleCache::lock() const {
  auto folder = belljar::open_at(folder_.get(), ".", O_RDONLY | O_DIRECTORY);
  if (!folder) return {};
  while (::flock(folder->get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return std::move(*folder);
}

// Locked by its writer until it is whole, so that sweep() can tell it from what a killed one left.
Result<Fd> ModuleCache::write_new(const std::string& name, const std::string& key, std::string_view compiled) const {
  const std::string path = path_ + "/" + name;
  Fd alone = lock();
  make_room(compiled.size() + kDigestBytes);
  // Readable for the sandbox's user too, who sees this one file alone.
  auto file = belljar::open_at(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
  if (!file) return cannot(path, "be made", file.error().value);
  ::flock(file->get(), LOCK_EX);
  alone.reset();
  auto written = write_all(file->get(), compiled);
  if (written) written = write_all(file->get(), digest_of(key, compiled));
  if (written && ::fchmod(file->get(), 0444) == 0) return std::move(*file);
  const int error = written ? errno : written.error().value;
  ::unlinkat(folder_.get(), name.c_str(), 0);
  return cannot(path, "be written", error);
}

Result<CachedModule> ModuleCache::put(const std::string& key, std::string_view compiled) const {
  constexpr int kTries = 4;  // each other one is lost to a process that removes the entry, or puts a damaged one there
  static std::atomic<unsigned> written{0};
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    const std::string name = fmt::format("{}.{}.{}{}", key, ::getpid(), written.fetch_add(1), kTemporary);
    Fd file = TRY(write_new(name, key, compiled));
    {
      const Fd alone = lock();
      error = ::linkat(folder_.get(), name.c_str(), folder_.get(), key.c_str(), 0) == 0 ? 0 : errno;
      ::unlinkat(folder_.get(), name.c_str(), 0);
      if (error == 0) ::flock(file.get(), LOCK_UN);
    }
    if (error != 0 && error != EEXIST) break;
    if (auto found = find(key)) return std::move(*found);
  }
  return cannot(path_ + "/" + key, "be put there", error == 0 ? ESTALE : error);
}

std::uint64_t ModuleCache::sweep() const {
  const Fd alone = lock();
  std::uint64_t removed = 0;
  for (const Entry& entry : entries_of(folder_.get())) {
    if (entry.name.ends_with(kTemporary) && remove_unused(folder_.get(), entry.name)) ++removed;
  }
  return removed;
}

// Under lock().
void ModuleCache::make_room(std::uint64_t bytes) const {
  std::vector<Entry> entries = entries_of(folder_.get());
  std::uint64_t total = bytes;
  for (const Entry& entry : entries) total += entry.bytes;
  if (entries.size() < kEntriesMax && total <= kBytesMax) return;
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.made.tv_sec != b.made.tv_sec ? a.made.tv_sec < b.made.tv_sec : a.made.tv_nsec < b.made.tv_nsec;
  });
  std::size_t left = entries.size();
  for (const Entry& entry : entries) {
    if (left <= kEntriesAfter && total <= kBytesMax) return;
    if (!remove_unused(folder_.get(), entry.name)) continue;
    total -= entry.bytes;
    --left;
  }
}

}  // namespace belljar::wasm
