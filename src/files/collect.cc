#include "files/collect.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/utf8.h"
#include "files/list_folder.h"
#include "files/protected.h"
#include "files/save_file.h"
#include "host/open_path.h"
#include "spec/checks.h"
#include "spec/errors.h"
#include "spec/limits.h"

namespace belljar {
namespace {

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    const std::string_view part = path.substr(0, path.find('/'));
    if (!part.empty()) parts.emplace_back(part);
    path.remove_prefix(part.size());
  }
  return parts;
}

// Whether an entry's content is lost to the caller by its being skipped, or it has none that could be collected.
enum class Loss { content, nothing };

// A folder of the sandbox's while it is read.
struct Source {
  int fd;            // open for reading, or O_PATH
  std::string path;  // inside
  std::string key;   // for why_protected()
  unsigned depth = 0;
};

class Collector {
 public:
  Collector(const SandboxSpec& spec, int cancel_fd)
      : spec_(spec),
        saver_(cancel_fd),
        entries_left_(spec.limits.collect_entries.value),
        bytes_left_(spec.limits.collect_size.value) {}

  void collect(const CollectSpec& wanted, const CollectPlace& place, CollectDestination& to);
  void skip(std::string path, std::string reason, Loss loss);
  Collected take() { return std::move(result_); }

 private:
  using Parts = std::span<const std::string>;

  void take_whole(const Source& folder, const std::string& name, CollectDestination& to);
  void match(const Source& folder, Parts pattern, TargetFolder& to);
  void take_content(const Source& folder, TargetFolder& to);
  void take_entry(const Source& folder, const FolderEntry& entry, TargetFolder& to);
  void take_file(const Source& folder, const std::string& name, TargetFolder& to);
  std::optional<FolderListing> list(const Source& folder);
  std::optional<int> open_target(const std::string& path, TargetFolder& to);
  std::string end_where_due(SaveFailure failure);
  std::optional<Fd> open_source(const Source& folder, const std::string& name, int flags);
  bool skip_protected(const Source& folder, const FolderEntry& entry, TargetFolder& to);
  bool is_mounted(const std::string& path) const;

  const SandboxSpec& spec_;
  FileSaver saver_;
  std::uint64_t entries_left_;
  std::uint64_t bytes_left_;
  bool is_cut_ = false;      // entries_left_ was not enough
  bool is_stopped_ = false;  // nothing more can be saved
  Collected result_;
};

std::string path_below(const Source& folder, std::string_view name) {
  return fmt::format("{}/{}", folder.path, name);
}

Source source_below(const Source& folder, const std::string& name, int fd) {
  return {fd, path_below(folder, name), folder_key(folder.key, name), folder.depth + 1};
}

void Collector::skip(std::string path, std::string reason, Loss loss) {
  result_.skipped.push_back({std::move(path), std::move(reason)});
  if (loss == Loss::content) result_.truncated = true;
}

// A mount of the caller's covers what is at its place in the sandbox's own files: an empty folder or file.
bool Collector::is_mounted(const std::string& path) const {
  return std::ranges::any_of(spec_.mounts, [&](const MountSpec& mount) { return mount.target == path; });
}

std::optional<Fd> Collector::open_source(const Source& folder, const std::string& name, int flags) {
  // Nothing but a file or folder is opened; should it change meanwhile, neither a pipe nor a terminal may do harm.
  const int harmless = (flags & O_PATH) != 0 ? O_NOFOLLOW : O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  auto opened = host::open_on_same_mount(folder.fd, name.c_str(), flags | harmless);
  if (opened) return std::move(*opened);
  const int error = opened.error().value;
  const char* why = error == ENOENT ? "there is no such file or folder" : errno_text(error);
  skip(path_below(folder, name), error == ELOOP ? kind_text(FileKind::link) : why,
       error == ENOENT || error == ELOOP ? Loss::nothing : Loss::content);
  return std::nullopt;
}

// The reason of a failure; one that concerns all that is left ends the collecting.
std::string Collector::end_where_due(SaveFailure failure) {
  if (!failure.concerns_all) return std::move(failure.reason);
  is_stopped_ = true;
  return failure.reason + "; collecting ended here";
}

// The folder on the host for `path`; reports where it can't be had.
std::optional<int> Collector::open_target(const std::string& path, TargetFolder& to) {
  const auto folder = to.open();
  if (folder) return *folder;
  const int error = folder.error().value;
  skip(path,
       error == ENOTDIR ? fmt::format("something else than a folder is in its place: {}", to.shown())
                        : end_where_due(save_failure(error)),
       Loss::content);
  return std::nullopt;
}

std::optional<FolderListing> Collector::list(const Source& folder) {
  if (is_stopped_ || is_cut_) return std::nullopt;
  auto listing = list_folder(folder.fd, entries_left_);
  if (!listing) {
    skip(folder.path, fmt::format("the folder can't be read: {}", errno_text(listing.error().value)), Loss::content);
    return std::nullopt;
  }
  entries_left_ -= listing->entries.size();
  if (listing->is_cut) {
    is_cut_ = true;
    skip(folder.path,
         fmt::format("only a part of this folder, and nothing after it: collecting ends after {} files and folders "
                     "(--collect-entries)",
                     spec_.limits.collect_entries.value),
         Loss::content);
  }
  return std::move(*listing);
}

// Reports and skips what a tool of the host would act on in `to`.
bool Collector::skip_protected(const Source& folder, const FolderEntry& entry, TargetFolder& to) {
  const std::string key = name_key(entry.name);
  std::string_view why = why_protected(folder.key, key, entry.kind);
  if (why.empty()) {
    const std::string_view in_git_folder = why_protected(kGitFolderKey, key, entry.kind);
    if (in_git_folder.empty()) return false;
    const int target = to.open_existing();
    if (is_git_folder(folder.fd) || (target >= 0 && is_git_folder(target))) why = in_git_folder;
  }
  if (why.empty()) return false;
  skip(path_below(folder, entry.name),
       fmt::format("{}; to get it all the same, name it in a --collect of its own", why), Loss::content);
  return true;
}

void Collector::take_file(const Source& folder, const std::string& name, TargetFolder& to) {
  const std::optional<Fd> file = open_source(folder, name, O_RDONLY);
  if (!file) return;
  const std::string path = path_below(folder, name);
  struct stat status{};
  if (::fstat(file->get(), &status) != 0) return skip(path, errno_text(errno), Loss::content);
  if (!S_ISREG(status.st_mode)) return skip(path, kind_text(kind_of_mode(status.st_mode)), Loss::nothing);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto too_large = [&](std::string_view which, std::uint64_t limit, std::string_view flag) {
    skip(path,
         fmt::format("its {} bytes go past the limit of {} for {} ({})", size, format_limit(LimitUnit::bytes, limit),
                     which, flag),
         Loss::content);
  };
  const Limits& limits = spec_.limits;
  if (size > limits.collect_file.value) return too_large("one file", limits.collect_file.value, "--collect-file-size");
  if (size > bytes_left_) return too_large("all files together", limits.collect_size.value, "--collect-size");
  const std::optional<int> target = open_target(path, to);
  if (!target) return;
  auto saved = saver_.save(file->get(), status, *target, name, spec_.collect_existing);
  if (!saved) return skip(path, end_where_due(std::move(saved.error())), Loss::content);
  bytes_left_ -= size;
  result_.files.push_back({path, to.shown() + "/" + name, size, std::move(saved->sha256), saved->change});
}

void Collector::take_entry(const Source& folder, const FolderEntry& entry, TargetFolder& to) {
  if (is_stopped_) return;
  const std::string path = path_below(folder, entry.name);
  if (is_mounted(path)) return skip(path, "mounted from the host", Loss::nothing);
  if (entry.kind != FileKind::regular && entry.kind != FileKind::folder) {
    return skip(path, kind_text(entry.kind), Loss::nothing);
  }
  if (skip_protected(folder, entry, to)) return;
  if (entry.kind == FileKind::regular) return take_file(folder, entry.name, to);
  if (folder.depth >= kCollectDepthMax) {
    return skip(path, fmt::format("more than {} folders deep", kCollectDepthMax), Loss::content);
  }
  const std::optional<Fd> inner = open_source(folder, entry.name, O_RDONLY | O_DIRECTORY);
  if (!inner) return;
  TargetFolder inner_to(to, entry.name);
  take_content(source_below(folder, entry.name, inner->get()), inner_to);
}

void Collector::take_content(const Source& folder, TargetFolder& to) {
  const std::optional<FolderListing> listing = list(folder);
  if (!listing) return;
  if (!open_target(folder.path, to)) return;
  for (const FolderEntry& entry : listing->entries) take_entry(folder, entry, to);
}

void Collector::match(const Source& folder, Parts pattern, TargetFolder& to) {
  const std::optional<FolderListing> listing = list(folder);
  if (!listing) return;
  for (const FolderEntry& entry : listing->entries) {
    if (::fnmatch(pattern[0].c_str(), entry.name.c_str(), FNM_PERIOD) != 0) continue;
    if (pattern.size() == 1) {
      take_entry(folder, entry, to);
      continue;
    }
    if (entry.kind != FileKind::folder || skip_protected(folder, entry, to)) continue;
    const std::optional<Fd> inner = open_source(folder, entry.name, O_RDONLY | O_DIRECTORY);
    if (!inner) continue;
    TargetFolder inner_to(to, entry.name);
    match(source_below(folder, entry.name, inner->get()), pattern.subspan(1), inner_to);
  }
}

// `name` in `folder`, which the caller named in full: a folder's content goes into the destination itself.
void Collector::take_whole(const Source& folder, const std::string& name, CollectDestination& to) {
  struct stat status{};
  if (::fstatat(folder.fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return skip(path_below(folder, name), "there is no such file or folder", Loss::nothing);
  }
  const FileKind kind = kind_of_mode(status.st_mode);
  if (kind != FileKind::folder && kind != FileKind::regular) {
    return skip(path_below(folder, name), kind_text(kind), Loss::nothing);
  }
  if (kind == FileKind::regular) return take_file(folder, name, to.folder());
  const std::optional<Fd> whole = open_source(folder, name, O_RDONLY | O_DIRECTORY);
  if (!whole) return;
  take_content({whole->get(), path_below(folder, name), to.name()}, to.folder());
}

void Collector::collect(const CollectSpec& wanted, const CollectPlace& place, CollectDestination& to) {
  const std::vector<std::string> parts = split_path(wanted.source.substr(place.path.size()));
  Source folder{place.folder_fd, place.path, to.name()};
  Fd opened;
  Parts rest(parts);
  // The folders that the caller named lead to the files, and are not made again in the destination.
  while (!rest.empty() && !has_wildcard(rest[0])) {
    if (rest.size() == 1) return take_whole(folder, rest[0], to);
    auto next = open_source(folder, rest[0], O_PATH | O_DIRECTORY);
    if (!next) return;
    folder.path = path_below(folder, rest[0]);
    opened = std::move(*next);
    folder.fd = opened.get();
    rest = rest.subspan(1);
  }
  const auto readable = open_at(folder.fd, ".", O_RDONLY | O_DIRECTORY);
  if (!readable) return skip(folder.path, errno_text(readable.error().value), Loss::content);
  folder.fd = readable->get();
  if (rest.empty()) return take_content(folder, to.folder());
  match(folder, rest, to.folder());
}

std::unexpected<Error> refuse(const CollectSpec& spec, std::string_view why) {
  return fail(ErrorCode::bad_collect, fmt::format("--collect {}:{}: {}", spec.source, spec.destination, why));
}

}  // namespace

Result<CollectDestination> CollectDestination::open(const CollectSpec& spec) {
  std::string path = spec.destination;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  CollectDestination to;
  auto folder = host::open_without_links(path.c_str(), O_PATH | O_DIRECTORY);
  const bool is_missing = !folder && folder.error().value == ENOENT;
  const std::size_t slash = path.rfind('/');
  if (is_missing) {
    const std::string above = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
    folder = host::open_without_links(above.c_str(), O_PATH | O_DIRECTORY);
  }
  if (!folder) {
    const int error = folder.error().value;
    if (error == ELOOP) {
      return refuse(spec,
                    "a part of this path is a symbolic link, which a program may have made; name the folder itself");
    }
    if (error == ENOENT) return refuse(spec, "the folder that it would be made in is missing");
    return refuse(spec, error == ENOTDIR ? "not a folder" : errno_text(error));
  }
  if (::faccessat(folder->get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return refuse(spec, fmt::format("can't be written to: {}", errno_text(errno)));
  }
  const auto real = host::path_of(folder->get());
  if (!real)
    return refuse(spec, fmt::format("can't tell where it is: {}; is /proc mounted?", errno_text(real.error().value)));
  if (!is_missing) {
    to.folder_ = std::make_unique<TargetFolder>(std::move(*folder), path);
    to.name_ = name_key(real->substr(real->rfind('/') + 1));
    return to;
  }
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  to.name_ = name_key(name);
  to.parent_ = std::make_unique<TargetFolder>(std::move(*folder), path.substr(0, path.size() - name.size()));
  to.folder_ = std::make_unique<TargetFolder>(*to.parent_, std::move(name), path);
  return to;
}

Result<std::vector<CollectDestination>> open_destinations(const std::vector<CollectSpec>& specs) {
  std::vector<CollectDestination> destinations;
  for (const CollectSpec& spec : specs) destinations.push_back(TRY(CollectDestination::open(spec)));
  return destinations;
}

Collected collect_files(const SandboxSpec& spec, const std::vector<CollectPlace>& places,
                        std::vector<CollectDestination>& destinations, int cancel_fd) {
  Collector collector(spec, cancel_fd);
  for (std::size_t i = 0; i < spec.collect.size(); ++i) {
    const std::string& source = spec.collect[i].source;
    const auto place = std::ranges::find_if(
        places, [&](const CollectPlace& each) { return source == each.path || source.starts_with(each.path + "/"); });
    if (place != places.end()) {
      collector.collect(spec.collect[i], *place, destinations[i]);
    } else {
      collector.skip(source, "the sandbox ended before it had a place for files", Loss::content);
    }
  }
  return collector.take();
}

}  // namespace belljar
