#include "files/capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>

#include "files/list_folder.h"
#include "files/same_content.h"
#include "files/save_file.h"
#include "host/open_path.h"
#include "spec/limits.h"

namespace belljar {
namespace {

constexpr const char* kIncoming = "incoming";

// An overlayfs marks a folder so whose like below is not seen any more. Only it can: the program's own attempts to set
// such an attribute fail or get another name.
bool is_opaque(int folder_fd) {
  char value = '\0';
  return ::fgetxattr(folder_fd, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

// A folder of the sandbox's, and its like in the workspace.
struct Pair {
  int now_fd;                    // open for reading
  const WorkspaceEntry* before;  // null: there was none, or it is covered
  bool hides_before;             // what is not here is not seen below either
  std::string path;              // below the workspace; empty: the workspace itself
  unsigned depth = 0;
};

class Capture {
 public:
  Capture(const SandboxSpec& spec, const Workspace& before, WorkspaceView view, int contents_fd, int cancel_fd)
      : spec_(spec),
        before_(before),
        view_(view),
        contents_fd_(contents_fd),
        saver_(cancel_fd),
        entries_left_(spec.limits.collect_entries.value + (view == WorkspaceView::copy ? before.entries : 0)),
        bytes_left_(spec.limits.collect_size.value) {}

  void compare(const Pair& folder);
  Captured take();
  void skip(const std::string& path, std::string reason, bool loses_content);

 private:
  void compare_entry(const Pair& folder, const FolderEntry& entry, bool in_git_folder);
  void compare_folder(const Pair& folder, const std::string& name, const WorkspaceEntry* before, bool in_git_folder);
  void compare_link(const Pair& folder, const std::string& name, const WorkspaceEntry* before, bool in_git_folder);
  void compare_file(const Pair& folder, const std::string& name, const WorkspaceEntry* before, bool in_git_folder);
  void keep_file(const std::string& path, const Fd& file, const struct stat& status, Change change);
  bool is_unchanged(const std::string& path, const WorkspaceEntry& before, const Fd& file, const struct stat& status);
  std::string before_sha256(const std::string& path, const WorkspaceEntry& before) const;
  void remove(const WorkspaceEntry& before, const std::string& path, bool in_git_folder);
  bool is_mounted(const std::string& path) const;
  bool is_git_folder_now(const Pair& folder, const FolderListing& listing) const;

  const SandboxSpec& spec_;
  const Workspace& before_;
  WorkspaceView view_;
  int contents_fd_;
  FileSaver saver_;
  std::uint64_t entries_left_;
  std::uint64_t bytes_left_;
  bool is_stopped_ = false;
  Captured result_;
};

std::string below(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}/{}", path, name);
}

std::string inside(const std::string& path) {
  return below(kWorkspaceTarget, path);
}

void Capture::skip(const std::string& path, std::string reason, bool loses_content) {
  result_.skipped.push_back({inside(path), std::move(reason)});
  if (loses_content) result_.truncated = true;
}

bool Capture::is_mounted(const std::string& path) const {
  return std::ranges::any_of(spec_.mounts, [&](const MountSpec& mount) { return mount.target == inside(path); });
}

std::string Capture::before_sha256(const std::string& path, const WorkspaceEntry& before) const {
  if (!before.has_other_names) return "";
  const auto file = host::open_on_same_mount(before_.folder.get(), path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat now{};
  if (!file || ::fstat(file->get(), &now) != 0 || stamp_of(now) != before.stamp) return "";
  return content_sha256(file->get()).value_or("");
}

// Counted are only kinds that can be applied: of others the host's side is left alone.
void Capture::remove(const WorkspaceEntry& before, const std::string& path, bool in_git_folder) {
  if (before.kind != FileKind::regular && before.kind != FileKind::folder && before.kind != FileKind::link) return;
  Change change{.path = path, .kind = before.kind, .change = FileChange::deleted, .before = before.stamp};
  change.in_git_folder = in_git_folder;
  change.before_sha256 = before_sha256(path, before);
  result_.changeset.changes.push_back(std::move(change));
  if (before.kind == FileKind::regular) result_.files.push_back({inside(path), "", 0, "", FileChange::deleted});
  const bool holds_git = before.find("HEAD") != nullptr && (before.find("objects") || before.find("commondir"));
  for (const WorkspaceEntry& child : before.children) remove(child, below(path, child.name), holds_git);
}

// What the sandbox's view of the folder shows, whichever side it comes from.
bool Capture::is_git_folder_now(const Pair& folder, const FolderListing& listing) const {
  const auto has = [&](std::string_view name) {
    const auto found = std::ranges::find(listing.entries, name, &FolderEntry::name);
    if (found != listing.entries.end()) return found->kind != FileKind::device;
    return !folder.hides_before && folder.before != nullptr && folder.before->find(name) != nullptr;
  };
  return has("HEAD") && (has("objects") || has("commondir"));
}

void Capture::compare(const Pair& folder) {
  if (is_stopped_) return;
  const auto listing = list_folder(folder.now_fd, entries_left_);
  if (!listing) {
    return skip(folder.path, fmt::format("the folder can't be read: {}", errno_text(listing.error().value)), true);
  }
  entries_left_ -= listing->entries.size();
  const bool in_git_folder = is_git_folder_now(folder, *listing);
  for (const FolderEntry& entry : listing->entries) compare_entry(folder, entry, in_git_folder);
  if (listing->is_cut && !is_stopped_) {
    is_stopped_ = true;
    skip(folder.path,
         fmt::format("only a part of this folder, and nothing after it: keeping ends after {} files and folders "
                     "(--collect-entries)",
                     spec_.limits.collect_entries.value),
         true);
  }
  if (is_stopped_ || !folder.hides_before || folder.before == nullptr) return;
  for (const WorkspaceEntry& before : folder.before->children) {
    const bool is_there = std::ranges::binary_search(listing->entries, before.name, {}, &FolderEntry::name);
    if (!is_there) remove(before, below(folder.path, before.name), in_git_folder);
  }
}

void Capture::compare_entry(const Pair& folder, const FolderEntry& entry, bool in_git_folder) {
  if (is_stopped_) return;
  const std::string path = below(folder.path, entry.name);
  const WorkspaceEntry* const before = folder.before != nullptr ? folder.before->find(entry.name) : nullptr;
  if (before == nullptr && is_mounted(path)) return;
  if (path.size() >= PATH_MAX) return skip(path, fmt::format("its path has more than {} bytes", PATH_MAX - 1), true);
  switch (entry.kind) {
    case FileKind::folder:
      return compare_folder(folder, entry.name, before, in_git_folder);
    case FileKind::regular:
      return compare_file(folder, entry.name, before, in_git_folder);
    case FileKind::link:
      return compare_link(folder, entry.name, before, in_git_folder);
    default:
      break;
  }
  struct stat status{};
  const bool is_whiteout = view_ == WorkspaceView::overlay && entry.kind == FileKind::device &&
                           ::fstatat(folder.now_fd, entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                           S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0);
  if (before != nullptr && before->kind == entry.kind) return;  // as it was, or as the overlayfs had to copy it
  if (before != nullptr) remove(*before, path, in_git_folder);
  if (!is_whiteout) skip(path, kind_text(entry.kind), false);
}

void Capture::compare_folder(const Pair& folder, const std::string& name, const WorkspaceEntry* before,
                             bool in_git_folder) {
  const std::string path = below(folder.path, name);
  const bool was_folder = before != nullptr && before->kind == FileKind::folder;
  if (before != nullptr && !was_folder) remove(*before, path, in_git_folder);
  if (folder.depth >= kWorkspaceDepthMax)
    return skip(path, fmt::format("more than {} folders deep", kWorkspaceDepthMax), true);
  if (!was_folder) {
    Change change{.path = path, .kind = FileKind::folder};
    change.in_git_folder = in_git_folder;
    result_.changeset.changes.push_back(std::move(change));
  }
  const auto opened = host::open_on_same_mount(folder.now_fd, name.c_str(), O_RDONLY | O_DIRECTORY);
  if (!opened) return skip(path, errno_text(opened.error().value), true);
  const bool hides = view_ == WorkspaceView::copy || is_opaque(opened->get());
  compare({opened->get(), was_folder ? before : nullptr, hides, path, folder.depth + 1});
}

void Capture::compare_link(const Pair& folder, const std::string& name, const WorkspaceEntry* before,
                           bool in_git_folder) {
  const std::string path = below(folder.path, name);
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlinkat(folder.now_fd, name.c_str(), target.data(), target.size());
  if (length < 0) return skip(path, errno_text(errno), true);
  const std::string text(target.data(), static_cast<std::size_t>(length));
  const bool was_link = before != nullptr && before->kind == FileKind::link;
  if (was_link && before->link_target == text) return;
  if (before != nullptr && !was_link) remove(*before, path, in_git_folder);
  Change change{.path = path, .kind = FileKind::link, .link_target = text};
  change.in_git_folder = in_git_folder;
  if (was_link) {
    change.change = FileChange::modified;
    change.before = before->stamp;
  }
  result_.changeset.changes.push_back(std::move(change));
}

// A program that only touched a file has not changed it.
bool Capture::is_unchanged(const std::string& path, const WorkspaceEntry& before, const Fd& file,
                           const struct stat& status) {
  if (before.is_executable != ((status.st_mode & S_IXUSR) != 0)) return false;
  if (before.stamp.size != static_cast<std::uint64_t>(status.st_size)) return false;
  const auto host_file = host::open_on_same_mount(before_.folder.get(), path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat now{};
  if (!host_file || ::fstat(host_file->get(), &now) != 0 || stamp_of(now) != before.stamp) return false;
  return have_same_content(file.get(), host_file->get());
}

void Capture::compare_file(const Pair& folder, const std::string& name, const WorkspaceEntry* before,
                           bool in_git_folder) {
  const std::string path = below(folder.path, name);
  const auto file = host::open_on_same_mount(folder.now_fd, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status{};
  if (!file) return skip(path, errno_text(file.error().value), true);
  if (::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode))
    return skip(path, "it changed while it was read", true);
  const bool was_file = before != nullptr && before->kind == FileKind::regular;
  if (was_file && is_unchanged(path, *before, *file, status)) return;
  if (before != nullptr && !was_file) remove(*before, path, in_git_folder);
  Change change{.path = path, .is_executable = (status.st_mode & S_IXUSR) != 0};
  change.in_git_folder = in_git_folder;
  if (was_file) {
    change.change = FileChange::modified;
    change.before = before->stamp;
    change.before_sha256 = before_sha256(path, *before);
  }
  keep_file(path, *file, status, std::move(change));
}

void Capture::keep_file(const std::string& path, const Fd& file, const struct stat& status, Change change) {
  // The writable space bounds what is in files, but not their size, where they have holes.
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t file_size_max = spec_.limits.collect_file.value;
  if (size > std::min(file_size_max, bytes_left_)) {
    const bool is_one = size > file_size_max;
    const std::uint64_t limit = is_one ? file_size_max : spec_.limits.collect_size.value;
    return skip(
        path,
        fmt::format("its {} bytes go past the limit of {} for {} ({})", size, format_limit(LimitUnit::bytes, limit),
                    is_one ? "one file" : "all files together", is_one ? "--collect-file-size" : "--collect-size"),
        true);
  }
  auto saved = saver_.save(file.get(), status, contents_fd_, kIncoming, ExistingFiles::replace);
  if (saved && ::renameat(contents_fd_, kIncoming, contents_fd_, saved->sha256.c_str()) != 0) {
    saved = std::unexpected(save_failure(errno));
  }
  if (!saved) {
    is_stopped_ = saved.error().concerns_all;
    return skip(path, saved.error().reason + (is_stopped_ ? "; keeping ended here" : ""), true);
  }
  bytes_left_ -= size;
  change.size = size;
  change.sha256 = saved->sha256;
  result_.files.push_back({inside(path), "", change.size, std::move(saved->sha256), change.change});
  result_.changeset.changes.push_back(std::move(change));
}

Captured Capture::take() {
  Changeset& changeset = result_.changeset;
  changeset.workspace = before_.path;
  changeset.device = before_.device;
  changeset.inode = before_.inode;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  changeset.created_ns = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  // Stable, so that what was deleted stays before what came in its place.
  std::ranges::stable_sort(changeset.changes, {}, &Change::path);
  std::ranges::stable_sort(result_.files, {}, &FileRecord::path);
  return std::move(result_);
}

}  // namespace

Captured capture_changes(const SandboxSpec& spec, const Workspace& before, int folder_fd, WorkspaceView view,
                         int contents_fd, int cancel_fd) {
  Capture capture(spec, before, view, contents_fd, cancel_fd);
  const auto readable = open_at(folder_fd, ".", O_RDONLY | O_DIRECTORY);
  if (readable) {
    const bool hides = view == WorkspaceView::copy || is_opaque(readable->get());
    capture.compare({readable->get(), &before.root, hides, ""});
  } else {
    capture.skip("", errno_text(readable.error().value), true);
  }
  return capture.take();
}

}  // namespace belljar
