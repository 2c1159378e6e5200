#include "image/image_builder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "host/privilege.h"
#include "image/cache_folder.h"
#include "image/link_scan.h"
#include "image/path_trace.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kCopyBytesMax = std::size_t{512} << 20;
constexpr std::size_t kManifestBytesMax = std::size_t{64} << 20;

// What programs look for in /etc without a link in /usr that leads there; names of Debian, Fedora, Arch and Alpine.
constexpr std::array<std::string_view, 23> kWanted = {
    "etc/localtime",
    "etc/timezone",
    "etc/ssl/certs",
    "etc/ssl/cert.pem",
    "etc/ssl/openssl.cnf",
    "etc/pki/tls/certs",
    "etc/pki/tls/cert.pem",
    "etc/pki/tls/openssl.cnf",
    "etc/pki/ca-trust/extracted",
    "etc/crypto-policies",
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/ld.so.conf.d",
    "etc/ld-musl-x86_64.path",
    "etc/ld-musl-aarch64.path",
    "etc/services",
    "etc/protocols",
    "etc/mime.types",
    "etc/alternatives",
    "etc/fonts",
    "etc/matplotlibrc",  // Debian's matplotlib does not start without it
    "etc/os-release",
    "etc/debian_version",
};

// Never copied, whoever may read them: accounts, keys, and what identifies the host.
constexpr std::array<std::string_view, 17> kNever = {
    "etc/passwd",  "etc/passwd-",       "etc/group",      "etc/group-",      "etc/shadow",          "etc/shadow-",
    "etc/gshadow", "etc/gshadow-",      "etc/subuid",     "etc/subgid",      "etc/hosts",           "etc/hostname",
    "etc/mtab",    "etc/nsswitch.conf", "etc/machine-id", "etc/ssl/private", "etc/pki/tls/private",
};

constexpr std::array<const char*, 6> kRootNames = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

// Links into these resolve in the sandbox by what the sandbox mounts there.
constexpr std::array<std::string_view, 6> kDevices = {"dev/null",   "dev/zero",    "dev/full",
                                                      "dev/random", "dev/urandom", "dev/tty"};

std::unexpected<Error> cannot_write(std::string_view path) {
  return fail(ErrorCode::no_resources,
              fmt::format("the host image can't be written to the cache: {}: {}", path, errno_text(errno)));
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// One entry of the manifest: what a copied thing was on the host, and the size of the copy of a file. Folders that are
// only passed through may gain other entries without harm, so their time is 0.
std::string manifest_line(const struct stat& status, bool with_time, std::string_view path) {
  return fmt::format("{} {} {} {} {} {}{}", status.st_mode, status.st_uid, status.st_ino,
                     with_time ? nanoseconds(status.st_ctim) : 0, S_ISREG(status.st_mode) ? status.st_size : 0, path,
                     '\0');
}

// The entry of a file of our own making, which the host does not have.
std::string own_file_line(std::size_t size, std::string_view path) {
  return fmt::format("0 0 0 0 {} {}{}", size, path, '\0');
}

constexpr std::string_view kManifestEnd("end\0", 4);

struct ManifestEntry {
  mode_t mode = 0;  // 0: a file of our own making
  uid_t owner = 0;
  ino_t inode = 0;
  std::int64_t changed_ns = 0;
  off_t size = 0;
  std::string path;
};

// False if the line does not have that form.
bool parse_manifest_line(std::string_view line, ManifestEntry& entry) {
  const auto number = [&line](auto& field) {
    const auto [end, error] = std::from_chars(line.begin(), line.end(), field);
    if (error != std::errc() || end == line.end() || *end != ' ') return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.begin()) + 1);
    return true;
  };
  if (!number(entry.mode) || !number(entry.owner) || !number(entry.inode)) return false;
  if (!number(entry.changed_ns) || !number(entry.size)) return false;
  entry.path = line;
  return true;
}

bool entry_matches(const ManifestEntry& entry, int host_fd, int image_fd) {
  struct stat status;
  if (entry.mode == 0 || S_ISREG(entry.mode)) {
    if (::fstatat(image_fd, entry.path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (!S_ISREG(status.st_mode) || status.st_size != entry.size) return false;
  }
  if (entry.mode == 0) return true;
  if (::fstatat(host_fd, entry.path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (entry.changed_ns != 0 && nanoseconds(status.st_ctim) != entry.changed_ns) return false;
  return status.st_mode == entry.mode && status.st_uid == entry.owner && status.st_ino == entry.inode;
}

class ImageBuilder {
 public:
  ImageBuilder(const ImagePlaces& places, int host_fd, int image_fd)
      : places_(places), host_fd_(host_fd), image_fd_(image_fd), root_entries_(read_root_entries(host_fd)) {}

  Result<void> build();

 private:
  enum class Place { system, copied, provided, outside };

  void tell_when_slow();
  Result<void> write_own_files();
  SysResult<Fd> parent_in_image(const std::string& path) const;
  Result<void> write_file(const std::string& path, std::string_view content);
  Result<void> make_folder(const std::string& path);
  Result<void> make_link(const std::string& path, const std::string& text);
  Result<void> want(const std::string& path);
  Result<void> take(const TraceNode& node, bool is_last);
  Result<void> copy_file(const TraceNode& node);
  void want_children(const TraceNode& folder);
  Place place_of(std::string_view path) const;
  bool is_allowed(const TraceNode& node, bool is_last) const;
  bool is_open_to_all(const struct stat& status, mode_t bits) const;
  Result<void> make_devices();

  const ImagePlaces& places_;
  const int host_fd_;
  const int image_fd_;
  const std::vector<RootEntry> root_entries_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool told_ = false;
  std::vector<std::string> todo_;             // host paths that the image shall have if the rule allows
  std::unordered_set<std::string> done_;      // image paths that exist
  std::unordered_set<std::string> expanded_;  // folders whose children were put on the list
  std::size_t copied_bytes_ = 0;
  std::string manifest_;
};

Result<void> ImageBuilder::build() {
  TRY_VOID(write_own_files());
  std::vector<std::string> folders = {"usr"};
  for (const RootEntry& entry : root_entries_) {
    if (entry.link_target.empty()) folders.push_back(entry.name);
  }
  std::vector<std::string> links = find_links(host_fd_, std::move(folders), [this] { tell_when_slow(); });
  for (const std::string& link : links) TRY_VOID(want(link));
  for (const std::string_view path : kWanted) todo_.emplace_back(path);
  while (!todo_.empty()) {
    const std::string path = std::move(todo_.back());
    todo_.pop_back();
    tell_when_slow();
    TRY_VOID(want(path));
  }
  TRY_VOID(make_devices());
  const std::string manifest = manifest_ + std::string(kManifestEnd);
  return write_file("manifest", manifest);
}

void ImageBuilder::tell_when_slow() {
  if (told_ || places_.on_slow_build == nullptr) return;
  if (std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1)) return;
  told_ = true;
  places_.on_slow_build();
}

Result<void> ImageBuilder::write_own_files() {
  TRY_VOID(make_folder("etc"));
  const PathTrace bash = trace_path(host_fd_, "bin/bash");
  const std::string_view shell = bash.end == TraceEnd::found && !bash.nodes.empty() ? "/bin/bash" : "/bin/sh";
  TRY_VOID(write_file("etc/passwd", fmt::format("root:x:0:0:root:/root:{0}\n"
                                                "sandbox:x:1000:1000:sandbox:/tmp/home:{0}\n"
                                                "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                                                shell)));
  TRY_VOID(write_file("etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"));
  TRY_VOID(write_file("etc/hosts", "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost sandbox\n"));
  TRY_VOID(write_file("etc/hostname", "sandbox\n"));
  TRY_VOID(write_file("etc/resolv.conf", ""));  // to be covered where a sandbox has a name server of its own
  TRY_VOID(write_file("etc/nsswitch.conf",
                      "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\n"
                      "protocols: files\nservices: files\nethers: files\nrpc: files\n"));
  return make_link("etc/mtab", "/proc/self/mounts");
}

const char* last_component(const std::string& path) {
  return path.c_str() + (path.rfind('/') + 1);
}

// The folder to make `path` in. No link is followed, not even one that we made: where the host is changed during the
// build, a name that was a link may come back as a folder.
SysResult<Fd> ImageBuilder::parent_in_image(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  return open_beneath(image_fd_, slash == std::string::npos ? "." : path.substr(0, slash), O_PATH | O_DIRECTORY);
}

Result<void> ImageBuilder::make_folder(const std::string& path) {
  done_.insert(path);
  const auto parent = parent_in_image(path);
  if (!parent || ::mkdirat(parent->get(), last_component(path), 0755) != 0 ||
      ::fchmodat(parent->get(), last_component(path), 0755, 0) != 0) {
    return cannot_write(path);
  }
  return {};
}

Result<void> ImageBuilder::make_link(const std::string& path, const std::string& text) {
  done_.insert(path);
  const auto parent = parent_in_image(path);
  if (!parent || ::symlinkat(text.c_str(), parent->get(), last_component(path)) != 0) return cannot_write(path);
  return {};
}

Result<void> ImageBuilder::write_file(const std::string& path, std::string_view content) {
  done_.insert(path);
  const auto parent = parent_in_image(path);
  if (!parent) return cannot_write(path);
  auto file = open_at(parent->get(), last_component(path), O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (!file || ::fchmod(file->get(), 0644) != 0 || !write_all(file->get(), content)) return cannot_write(path);
  manifest_ += own_file_line(content.size(), path);
  return {};
}

ImageBuilder::Place ImageBuilder::place_of(std::string_view path) const {
  const std::string_view top = path.substr(0, path.find('/'));
  if (top == "usr") return Place::system;
  if (top == "etc" || path == "var" || is_within(path, "var/lib")) return Place::copied;
  if (top == "proc" || path == "dev" || std::ranges::find(kDevices, path) != kDevices.end()) return Place::provided;
  for (const RootEntry& entry : root_entries_) {
    if (top == entry.name) return Place::system;
  }
  return Place::outside;
}

bool ImageBuilder::is_open_to_all(const struct stat& status, mode_t bits) const {
  return status.st_uid == places_.trusted_owner && (status.st_mode & bits) == bits;
}

// Judges one step of a walk: may the image have this node, and can an ordinary user get past it on the host?
bool ImageBuilder::is_allowed(const TraceNode& node, bool is_last) const {
  const Place place = place_of(node.path);
  if (place == Place::outside) return false;
  if (place == Place::system) return !S_ISDIR(node.status.st_mode) || (node.status.st_mode & S_IXOTH) != 0;
  for (const std::string_view never : kNever) {
    if (is_within(node.path, never) && !done_.contains(node.path)) return false;
  }
  if (S_ISLNK(node.status.st_mode)) return node.status.st_uid == places_.trusted_owner;
  if (S_ISDIR(node.status.st_mode)) return is_open_to_all(node.status, S_IXOTH);
  return is_last && S_ISREG(node.status.st_mode) && is_open_to_all(node.status, S_IROTH);
}

// Puts into the image what `path` needs there, so that it resolves inside as it does on the host.
Result<void> ImageBuilder::want(const std::string& path) {
  const PathTrace trace = trace_path(host_fd_, path);
  std::size_t count = trace.nodes.size();
  bool is_provided = false;
  for (std::size_t i = 0; i < trace.nodes.size() && !is_provided; ++i) {
    const std::string& node_path = trace.nodes[i].path;
    if (node_path != "dev" && place_of(node_path) == Place::provided) {
      count = i;
      is_provided = true;
    }
  }
  if (trace.end != TraceEnd::found && !is_provided) return {};
  for (std::size_t i = 0; i < count; ++i) {
    const TraceNode& node = trace.nodes[i];
    const bool is_last = i + 1 == trace.nodes.size();
    if (node.path == "dev" && is_provided) continue;
    if (!is_allowed(node, is_last)) return {};
  }
  for (std::size_t i = 0; i < count; ++i) {
    const TraceNode& node = trace.nodes[i];
    if (place_of(node.path) == Place::copied) TRY_VOID(take(node, i + 1 == trace.nodes.size()));
  }
  return {};
}

Result<void> ImageBuilder::take(const TraceNode& node, bool is_last) {
  if (S_ISDIR(node.status.st_mode)) {
    if (!done_.contains(node.path)) {
      TRY_VOID(make_folder(node.path));
      manifest_ += manifest_line(node.status, false, node.path);
    }
    if (is_last) want_children(node);
    return {};
  }
  if (done_.contains(node.path)) return {};
  if (S_ISREG(node.status.st_mode)) return copy_file(node);
  manifest_ += manifest_line(node.status, true, node.path);
  return make_link(node.path, node.link_text);
}

// A folder that something leads to is wanted whole, but never all of /etc.
void ImageBuilder::want_children(const TraceNode& folder) {
  if (folder.path == "etc" || folder.path == "var" || folder.path == "var/lib") return;
  if (!is_open_to_all(folder.status, S_IROTH | S_IXOTH) || !expanded_.insert(folder.path).second) return;
  auto opened = open_beneath(host_fd_, folder.path, O_RDONLY | O_DIRECTORY);
  if (!opened) return;
  DIR* const stream = ::fdopendir(opened->get());
  if (stream == nullptr) return;
  (void)opened->release();
  manifest_ += manifest_line(folder.status, true, folder.path);
  while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    todo_.push_back(folder.path + '/' + entry->d_name);
  }
  ::closedir(stream);
}

// A file that can't be opened, or that has turned into something else, is left out: that is no error of ours.
Result<void> ImageBuilder::copy_file(const TraceNode& node) {
  auto source = open_beneath(host_fd_, node.path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status;
  if (!source || ::fstat(source->get(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode) || !is_open_to_all(status, S_IROTH)) return {};
  copied_bytes_ += static_cast<std::size_t>(status.st_size);
  if (copied_bytes_ > kCopyBytesMax) {
    return fail(ErrorCode::host_unsupported,
                fmt::format("what links in /usr lead to in /etc and /var/lib is more than {} MiB; the last was /{}",
                            kCopyBytesMax >> 20, node.path));
  }
  done_.insert(node.path);
  const auto parent = parent_in_image(node.path);
  if (!parent) return cannot_write(node.path);
  const char* const name = last_component(node.path);
  const mode_t mode = (status.st_mode & S_IXOTH) != 0 ? 0755 : 0644;
  auto copy = open_at(parent->get(), name, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (!copy || ::fchmod(copy->get(), mode) != 0) return cannot_write(node.path);
  char buffer[64 << 10];
  while (true) {
    const ssize_t count = ::read(source->get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      ::unlinkat(parent->get(), name, 0);
      return {};
    }
    if (count == 0) break;
    if (!write_all(copy->get(), {buffer, static_cast<std::size_t>(count)})) return cannot_write(node.path);
  }
  manifest_ += manifest_line(status, true, node.path);
  return {};
}

// Device nodes need root, and a file system that neither forbids them nor makes them useless (nodev).
Result<void> ImageBuilder::make_devices() {
  if (!host::is_root_of_host()) return {};
  struct Node {
    const char* path;
    unsigned major, minor;
  };
  // devices.txt of the kernel: memory devices are 1, terminals 5.
  constexpr Node kNodes[] = {{"dev/null", 1, 3},   {"dev/zero", 1, 5},    {"dev/full", 1, 7},
                             {"dev/random", 1, 8}, {"dev/urandom", 1, 9}, {"dev/tty", 5, 0}};
  constexpr std::pair<const char*, const char*> kLinks[] = {{"dev/fd", "/proc/self/fd"},
                                                            {"dev/stdin", "/proc/self/fd/0"},
                                                            {"dev/stdout", "/proc/self/fd/1"},
                                                            {"dev/stderr", "/proc/self/fd/2"},
                                                            {"dev/ptmx", "pts/ptmx"}};
  TRY_VOID(make_folder("dev"));
  for (const Node& node : kNodes) {
    if (::mknodat(image_fd_, node.path, S_IFCHR | 0666, ::makedev(node.major, node.minor)) != 0 ||
        ::fchmodat(image_fd_, node.path, 0666, 0) != 0) {
      remove_tree(image_fd_, "dev");
      return {};
    }
  }
  // On a mount that forbids devices they can't be tried; sandboxes mount a copy that does not.
  struct statvfs file_system{};
  const bool can_be_tried = ::fstatvfs(image_fd_, &file_system) == 0 && (file_system.f_flag & ST_NODEV) == 0;
  if (can_be_tried && !open_at(image_fd_, "dev/null", O_WRONLY)) {
    remove_tree(image_fd_, "dev");
    return {};
  }
  for (const auto& [path, target] : kLinks) TRY_VOID(make_link(path, target));
  TRY_VOID(make_folder("dev/pts"));
  TRY_VOID(make_folder("dev/mqueue"));
  return make_folder("dev/shm");
}

}  // namespace

Result<void> build_image(const ImagePlaces& places, int host_fd, int image_fd) {
  return ImageBuilder(places, host_fd, image_fd).build();
}

std::vector<RootEntry> read_root_entries(int host_fd) {
  std::vector<RootEntry> entries;
  for (const char* const name : kRootNames) {
    struct stat status;
    if (::fstatat(host_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(status.st_mode)) entries.push_back({.name = name, .link_target = {}});
    if (S_ISLNK(status.st_mode)) {
      entries.push_back({.name = name, .link_target = read_link_at(host_fd, name)});
    }
  }
  // A link to anywhere else of the host (or to nothing) is none of the image's.
  std::erase_if(entries, [&entries](const RootEntry& entry) {
    if (entry.link_target.empty()) return false;
    std::string_view target = entry.link_target;
    target.remove_prefix(std::min(target.find_first_not_of('/'), target.size()));
    const std::string_view top = target.substr(0, target.find('/'));
    return top != "usr" && std::ranges::find(entries, top, &RootEntry::name) == entries.end();
  });
  return entries;
}

bool manifest_matches(int host_fd, int image_fd) {
  const auto content = read_file_at(image_fd, "manifest", kManifestBytesMax);
  if (!content) return false;
  std::string_view rest = *content;
  if (!rest.ends_with(kManifestEnd)) return false;
  rest.remove_suffix(kManifestEnd.size());
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\0'));
    ManifestEntry entry;
    if (!parse_manifest_line(line, entry) || !entry_matches(entry, host_fd, image_fd)) return false;
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return true;
}

}  // namespace belljar
