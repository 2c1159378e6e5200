#include "tiers/kernel/content_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/sha256.h"
#include "image/cache_folder.h"
#include "image/host_image.h"
#include "tiers/kernel/content_cache_shm.h"

namespace belljar::content_cache {
namespace {

constexpr int kFormat = 1;
constexpr std::size_t kFilesMost = 4;
constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";

// Names the cache, and stands at its beginning.
std::optional<std::string> name_of(std::string_view what) {
  const auto boot = read_file_at(AT_FDCWD, kBootId, 64);
  if (!boot) return std::nullopt;
  Sha256 hash;
  hash.update(fmt::format("{} {} ", kFormat, *boot));
  hash.update(what);
  return hash.finish();
}

bool is_sound(int file, const std::string& name) {
  struct stat status{};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & (S_IRWXG | S_IRWXO)) != 0 || status.st_size != static_cast<off_t>(kBudget)) {
    return false;
  }
  char begin[Header::kNameSize] = {};
  std::uint32_t is_full = 1;
  if (::pread(file, begin, sizeof begin, 0) != sizeof begin ||
      ::pread(file, &is_full, sizeof is_full, offsetof(Header, is_full)) != sizeof is_full) {
    return false;
  }
  return is_full == 0 && name == std::string_view(begin, ::strnlen(begin, sizeof begin));
}

OpenedCache open_sound(int folder, const std::string& name) {
  OpenedCache cache;
  auto writable = open_at(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  if (!writable || !is_sound(writable->get(), name)) return cache;
  auto readable = open_at(AT_FDCWD, fmt::format("/proc/self/fd/{}", writable->get()).c_str(), O_RDONLY);
  if (readable) cache = {std::move(*writable), std::move(*readable)};
  return cache;
}

// The oldest ones go. Sandboxes that have one open keep it.
void make_room(int folder_fd) {
  auto folder = open_at(folder_fd, ".", O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(folder ? ::fdopendir(folder->release()) : nullptr, ::closedir);
  if (!stream) return;
  std::vector<std::pair<std::int64_t, std::string>> files;
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    struct stat status{};
    if (::fstatat(folder_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode)) {
      files.emplace_back(status.st_mtim.tv_sec, entry->d_name);
    }
  }
  std::ranges::sort(files, std::greater());
  for (std::size_t i = kFilesMost - 1; i < files.size(); ++i) ::unlinkat(folder_fd, files[i].second.c_str(), 0);
}

// Whole when it gets its name. Of two at once, the later one stays.
void make(int folder, const std::string& name) {
  make_room(folder);
  const std::string temporary = fmt::format("{}.{}.new", name, ::getpid());
  auto file = open_at(folder, temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  if (!file) return;
  char begin[Header::kNameSize] = {};
  name.copy(begin, sizeof begin - 1);
  if (::ftruncate(file->get(), kBudget) != 0 || ::pwrite(file->get(), begin, sizeof begin, 0) != sizeof begin ||
      ::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) {
    ::unlinkat(folder, temporary.c_str(), 0);
  }
}

}  // namespace

OpenedCache open_cache_in(const std::string& folder, std::string_view what) {
  const auto opened =
      open_private_folder(folder, {.what = "the folder of contents", .remedy = "make it", .mode = 0700});
  const auto name = name_of(what);
  struct statvfs space{};
  // What programs execute lies there too.
  if (!opened || !name || ::fstatvfs(opened->get(), &space) != 0 || (space.f_flag & ST_NOEXEC) != 0) return {};
  OpenedCache cache = open_sound(opened->get(), *name);
  if (cache.writable.is_open()) return cache;
  make(opened->get(), *name);
  return open_sound(opened->get(), *name);
}

OpenedCache open_cache(std::string_view what) {
  const auto above = cache_folder();
  if (!above || !open_cache_folder(*above)) return {};
  return open_cache_in(*above + "/kernel", what);
}

}  // namespace belljar::content_cache
