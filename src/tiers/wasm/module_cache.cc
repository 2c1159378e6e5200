#include "tiers/wasm/module_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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
constexpr std::size_t kEntriesMax = 256;
constexpr std::size_t kEntriesAfter = 192;

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

bool is_whole(int file, std::size_t size, const std::string& key) {
  if (size <= kDigestBytes) return false;
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  if (address == MAP_FAILED) return false;
  const std::string_view all(static_cast<const char*>(address), size);
  const std::string_view compiled = all.substr(0, size - kDigestBytes);
  const bool is_same = digest_of(key, compiled) == all.substr(size - kDigestBytes);
  ::munmap(address, size);
  return is_same;
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
  if (!file || ::fstat(file->get(), &status) != 0) return std::nullopt;
  const bool is_ours =
      S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (is_ours && is_whole(file->get(), static_cast<std::size_t>(status.st_size), key)) {
    return CachedModule{std::move(*file), path_ + "/" + key};
  }
  ::unlinkat(folder_.get(), key.c_str(), 0);
  return std::nullopt;
}

Result<CachedModule> ModuleCache::put(const std::string& key, std::string_view compiled) const {
  make_room();
  const std::string path = path_ + "/" + key;
  const std::string temporary = fmt::format("{}.{}.new", key, ::getpid());
  // Readable for the sandbox's user too, who sees this one file alone.
  auto file = belljar::open_at(folder_.get(), temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
  if (!file) return cannot(path, "be made", file.error().value);
  auto written = write_all(file->get(), compiled);
  if (written) written = write_all(file->get(), digest_of(key, compiled));
  if (written && ::fchmod(file->get(), 0444) == 0 &&
      ::renameat(folder_.get(), temporary.c_str(), folder_.get(), key.c_str()) == 0) {
    return CachedModule{std::move(*file), path};
  }
  const int error = written ? errno : written.error().value;
  ::unlinkat(folder_.get(), temporary.c_str(), 0);
  return cannot(path, "be written", error);
}

void ModuleCache::make_room() const {
  auto folder = belljar::open_at(folder_.get(), ".", O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(folder ? ::fdopendir(folder->release()) : nullptr, ::closedir);
  if (!stream) return;
  struct Entry {
    std::string name;
    timespec made;
  };
  std::vector<Entry> entries;
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    struct stat status{};
    if (::fstatat(folder_.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(status.st_mode)) continue;
    entries.push_back({entry->d_name, status.st_mtim});
  }
  if (entries.size() < kEntriesMax) return;
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.made.tv_sec != b.made.tv_sec ? a.made.tv_sec < b.made.tv_sec : a.made.tv_nsec < b.made.tv_nsec;
  });
  for (std::size_t i = 0; i + kEntriesAfter < entries.size(); ++i) {
    ::unlinkat(folder_.get(), entries[i].name.c_str(), 0);
  }
}

}  // namespace belljar::wasm
