#include "image/host_image.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>

#include "host/privilege.h"
#include "image/cache_folder.h"
#include "image/image_builder.h"
#include "image/path_trace.h"
#include "spec/errors.h"

namespace belljar {
namespace {

// Raised whenever build_image() would make something else of the same host.
constexpr std::uint64_t kFormatVersion = 5;

// The copies are compared with the host when the last comparison is older than this: the key below does not see a
// change inside a folder that it does not name, such as a file that was made private by hand.
constexpr std::time_t kCheckAfterSeconds = 60;

// Links that came into /usr by hand deep below /usr/local are found by a new scan at the latest after this.
constexpr std::time_t kRebuildAfterSeconds = 24L * 60 * 60;

// Images of other hosts (a home folder on a network) are left to these, unless they have long been abandoned.
constexpr std::time_t kForeignSeconds = 30L * 24 * 60 * 60;

constexpr uid_t kOverflowUid = 65534;

// The package manager's books (the first that exists), and the folders whose entries change when something is
// installed, set up or taken away. Each costs a stat(2) at every start; what these miss is found by the comparison
// above.
constexpr std::array<const char*, 5> kPackageBooks = {"var/lib/dpkg/status", "var/lib/rpm/rpmdb.sqlite",
                                                      "usr/lib/sysimage/rpm/rpmdb.sqlite", "var/lib/pacman/local",
                                                      "lib/apk/db/installed"};
constexpr std::array<const char*, 6> kKeyFolders = {"etc",     "etc/alternatives", "etc/ssl/certs",
                                                    "usr/bin", "usr/local/bin",    "usr/local/lib"};

class Hash {  // FNV-1a, 64 bits
 public:
  void add(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) {
      value_ = (value_ ^ ((value >> (8 * i)) & 0xff)) * 0x100000001b3;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

struct ImageName {
  std::string host;  // "host-HASH-": which host's images these are
  std::string full;  // host + "KEY"
};

ImageName image_name(int host_fd, int usr_fd, const ImagePlaces& places) {
  Hash host;
  Hash key;
  key.add(kFormatVersion);
  key.add(places.trusted_owner);
  struct stat status;
  const auto add_time = [&key, &status] {
    key.add(status.st_ino);
    key.add(static_cast<std::uint64_t>(status.st_size));
    key.add(static_cast<std::uint64_t>(status.st_ctim.tv_sec));
    key.add(static_cast<std::uint64_t>(status.st_ctim.tv_nsec));
  };
  for (const int fd : {host_fd, usr_fd}) {
    if (::fstat(fd, &status) != 0) continue;
    host.add(status.st_dev);
    host.add(status.st_ino);
    add_time();
  }
  for (const char* const path : kPackageBooks) {
    if (::fstatat(host_fd, path, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    add_time();
    break;
  }
  for (const char* const path : kKeyFolders) {
    if (::fstatat(host_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0) {
      add_time();
    } else {
      key.add(0);
    }
  }
  ImageName name{.host = fmt::format("host-{:016x}-", host.value()), .full = {}};
  name.full = fmt::format("{}{:016x}", name.host, key.value());
  return name;
}

// Opens an image and takes the shared lock that keeps it from being removed. One that was moved aside meanwhile is
// still whole; one that is being removed has lost its "checked" first, so is_fresh() refuses it.
std::optional<Fd> lock_image(int cache_fd, const char* name) {
  auto image = open_at(cache_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!image || !is_private_folder(image->get())) return std::nullopt;
  if (::flock(image->get(), LOCK_SH | LOCK_NB) != 0) return std::nullopt;
  return std::move(*image);
}

// Once a minute: are the copies still what the host has? The time of "checked" says when that was last known.
bool is_fresh(int host_fd, int image_fd) {
  struct stat status;
  if (::fstatat(image_fd, "checked", &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const std::time_t now = std::time(nullptr);
  if (status.st_mtime <= now && now - status.st_mtime < kCheckAfterSeconds) return true;
  if (::fstatat(image_fd, "manifest", &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (status.st_mtime > now || now - status.st_mtime >= kRebuildAfterSeconds) return false;
  if (!manifest_matches(host_fd, image_fd)) return false;
  ::utimensat(image_fd, "checked", nullptr, 0);  // where this fails, the next start compares again
  return true;
}

std::optional<Fd> open_fresh(int host_fd, int cache_fd, const ImageName& name) {
  auto image = lock_image(cache_fd, name.full.c_str());
  if (!image || !is_fresh(host_fd, image->get())) return std::nullopt;
  return image;
}

// What the image holds, in the text of one link, because one readlink(2) is the cheapest way to store a few words:
// lines such as "bin=usr/bin", "lib=" for a folder, and the parts "etc", "var", "dev".
constexpr const char* kLayout = "layout";

Result<void> write_layout(int host_fd, int image_fd) {
  std::string text;
  for (const char* const part : {"etc", "var", "dev"}) {
    if (::faccessat(image_fd, part, F_OK, AT_SYMLINK_NOFOLLOW) == 0) text += fmt::format("{}\n", part);
  }
  for (const RootEntry& entry : read_root_entries(host_fd))
    text += fmt::format("{}={}\n", entry.name, entry.link_target);
  if (::symlinkat(text.c_str(), image_fd, kLayout) != 0) {
    return fail(ErrorCode::no_resources, fmt::format("the host image can't be completed: {}", errno_text(errno)));
  }
  return {};
}

Result<HostImage> assemble(const ImagePlaces& places, Fd usr, const std::string& name, Fd lock) {
  HostImage image;
  struct statvfs file_system;
  image.forbids_devices = ::fstatvfs(lock.get(), &file_system) != 0 || (file_system.f_flag & ST_NODEV) != 0;
  const std::string layout = read_link_at(lock.get(), kLayout);
  for (std::string_view rest = layout; !rest.empty();) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (const std::size_t equals = line.find('='); equals != std::string::npos) {
      image.root_entries.push_back({.name = line.substr(0, equals), .link_target = line.substr(equals + 1)});
      continue;
    }
    Fd& fd = line == "etc" ? image.etc : line == "var" ? image.var : image.dev;
    std::string& path = line == "etc" ? image.etc_path : line == "var" ? image.var_path : image.dev_path;
    auto part = open_at(lock.get(), line.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!part) break;
    fd = std::move(*part);
    path = fmt::format("{}/{}/{}", places.cache, name, line);
  }
  if (!image.etc.is_open()) {
    return fail(ErrorCode::host_unsupported,
                fmt::format("the cached host image {}/{} is damaged; remove it", places.cache, name));
  }
  image.usr = std::move(usr);
  image.lock = std::move(lock);
  return image;
}

// Holds the one lock under which images are made and removed.
Result<Fd> lock_builds(int cache_fd, const std::string& cache) {
  auto file = open_at(cache_fd, "build.lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!file) {
    return fail(ErrorCode::host_unsupported,
                fmt::format("the cache folder {} can't be written: {}", cache, errno_text(file.error().value)));
  }
  while (::flock(file->get(), LOCK_EX) != 0) {
    if (errno != EINTR)
      return fail(ErrorCode::host_unsupported, fmt::format("no locks in {}: {}", cache, errno_text(errno)));
  }
  return std::move(*file);
}

// Removes what nobody uses: half-built folders (only we can be building), and this host's other images.
void sweep(int cache_fd, const ImageName& keep) {
  auto listed = open_at(cache_fd, ".", O_RDONLY | O_DIRECTORY);
  if (!listed) return;
  DIR* const stream = ::fdopendir(listed->get());
  if (stream == nullptr) return;
  (void)listed->release();
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) names.emplace_back(entry->d_name);  // NOLINT(concurrency-mt-unsafe)
  ::closedir(stream);
  for (const std::string& name : names) {
    if (name == keep.full) continue;
    const bool is_ours = name.starts_with(keep.host) || name.starts_with("building-") || name.starts_with("old-");
    if (!is_ours && !name.starts_with("host-")) continue;
    const auto folder = open_at(cache_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    struct stat status;
    if (!folder || ::fstat(folder->get(), &status) != 0) continue;
    if (!is_ours && std::time(nullptr) - status.st_mtime < kForeignSeconds) continue;
    if (::flock(folder->get(), LOCK_EX | LOCK_NB) != 0) continue;  // a running sandbox has it mounted
    // From here on it must not be taken for whole, even if it can't be removed to the end.
    if (::unlinkat(folder->get(), "checked", 0) != 0 && errno != ENOENT) continue;
    remove_tree(cache_fd, name.c_str());
  }
}

// Builds beside, and moves into place when complete. Nothing waits for the disk: manifest_matches() finds what a crash
// of the machine has torn.
Result<Fd> build(const ImagePlaces& places, int host_fd, int cache_fd, const ImageName& name) {
  const std::string temporary = fmt::format("building-{}", ::getpid());
  remove_tree(cache_fd, temporary.c_str());
  if (::mkdirat(cache_fd, temporary.c_str(), 0755) != 0) {
    return fail(ErrorCode::no_resources,
                fmt::format("no folder can be made in {}: {}", places.cache, errno_text(errno)));
  }
  auto folder = open_at(cache_fd, temporary.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder || ::fchmod(folder->get(), 0755) != 0 || ::flock(folder->get(), LOCK_SH) != 0) {
    return fail(ErrorCode::no_resources,
                fmt::format("no folder can be used in {}: {}", places.cache, errno_text(errno)));
  }
  auto built = build_image(places, host_fd, folder->get());
  if (built) built = write_layout(host_fd, folder->get());
  if (!built) {
    remove_tree(cache_fd, temporary.c_str());
    return std::unexpected(built.error());
  }
  if (!open_at(folder->get(), "checked", O_WRONLY | O_CREAT | O_EXCL, 0644)) {
    return fail(ErrorCode::no_resources, fmt::format("{} is full", places.cache));
  }
  // An outdated image of the same name may be mounted somewhere: it moves aside, and is swept when it is let go.
  const std::string aside = fmt::format("old-{}-{}", ::getpid(), std::time(nullptr));
  ::renameat(cache_fd, name.full.c_str(), cache_fd, aside.c_str());
  if (::renameat(cache_fd, temporary.c_str(), cache_fd, name.full.c_str()) != 0) {
    const int error = errno;
    remove_tree(cache_fd, temporary.c_str());
    return fail(ErrorCode::no_resources,
                fmt::format("the image can't be moved into {}: {}", places.cache, errno_text(error)));
  }
  return std::move(*folder);
}

void tell_slow_build() {
  if (::isatty(STDERR_FILENO) == 1) {
    std::fputs("belljar: preparing the host image; this happens once after each change of the host's packages\n",
               stderr);
  }
}

}  // namespace

Result<HostImage> open_host_image() {
  ImagePlaces places;
  places.cache = TRY(cache_folder());
  places.on_slow_build = tell_slow_build;
  // Root's files, except where root is not mapped into our user namespace: then they show as those of whoever owns
  // /usr.
  struct stat usr;
  if (!host::is_root_of_host() && ::stat("/usr", &usr) == 0) places.trusted_owner = usr.st_uid;
  return open_host_image(places);
}

Result<HostImage> open_host_image(const ImagePlaces& places) {
  const auto host = open_at(AT_FDCWD, places.host_root.c_str(), O_PATH | O_DIRECTORY);
  if (!host) {
    return fail(ErrorCode::host_unsupported,
                fmt::format("{} can't be opened: {}", places.host_root, errno_text(host.error().value)));
  }
  const int host_fd = host->get();
  auto usr = open_at(host_fd, "usr", O_PATH | O_DIRECTORY);
  if (!usr) {
    return fail(ErrorCode::host_unsupported,
                fmt::format("the host's /usr can't be opened: {}", errno_text(usr.error().value)));
  }
  const Fd cache = TRY(open_cache_folder(places.cache));
  ImageName name = image_name(host_fd, usr->get(), places);
  if (auto image = open_fresh(host_fd, cache.get(), name)) {
    return assemble(places, std::move(*usr), name.full, std::move(*image));
  }
  const Fd builds = TRY(lock_builds(cache.get(), places.cache));
  name = image_name(host_fd, usr->get(), places);
  if (auto image = open_fresh(host_fd, cache.get(), name)) {  // another process has built it while we waited
    return assemble(places, std::move(*usr), name.full, std::move(*image));
  }
  Fd image = TRY(build(places, host_fd, cache.get(), name));
  sweep(cache.get(), name);
  return assemble(places, std::move(*usr), name.full, std::move(image));
}

}  // namespace belljar
