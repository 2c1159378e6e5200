#include "files/apply.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "files/install_file.h"
#include "files/protected.h"
#include "files/same_content.h"
#include "host/open_path.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kPathsShown = 10;
constexpr mode_t kNewFolderMode = 0777;

bool is_at_or_below(std::string_view path, std::string_view above) {
  return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '/');
}

// The path up to the last ".git" in it; empty where there is none.
std::string git_folder_above(const std::string& path) {
  std::string found;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t slash = std::min(path.find('/', start), path.size());
    if (name_key(path.substr(start, slash - start)) == kGitFolderKey) found = path.substr(0, slash);
    start = slash + 1;
  }
  return found;
}

struct SplitPath {
  std::string folder;  // "." for the workspace itself
  std::string name;
};

SplitPath split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? SplitPath{".", path} : SplitPath{path.substr(0, slash), path.substr(slash + 1)};
}

// No link on the way is followed, and nothing that is mounted below is entered.
SysResult<Fd> open_parent(int workspace_fd, const std::string& folder) {
  return host::open_on_same_mount(workspace_fd, folder.c_str(), O_PATH | O_DIRECTORY);
}

// The same, and makes what is missing.
SysResult<Fd> make_parent(int workspace_fd, const std::string& folder) {
  auto opened = open_parent(workspace_fd, folder);
  if (opened || opened.error().value != ENOENT) return opened;
  const SplitPath path = split(folder);
  const Fd above = TRY(make_parent(workspace_fd, path.folder));
  if (::mkdirat(above.get(), path.name.c_str(), kNewFolderMode) != 0 && errno != EEXIST)
    return std::unexpected(Errno{errno});
  return host::open_on_same_mount(above.get(), path.name.c_str(), O_PATH | O_DIRECTORY);
}

std::string temporary_name(const KeptChangeset& kept) {
  return fmt::format(".belljar-{}.part", kept.id);
}

// What was kept, if it still is: ENODATA where it is missing, EILSEQ where it is not what was kept.
SysResult<Fd> open_content(const KeptChangeset& kept, const Change& change) {
  auto content = open_at(kept.contents.get(), change.sha256.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!content) return std::unexpected(Errno{content.error().value == ENOENT ? ENODATA : content.error().value});
  struct stat status{};
  const bool is_sound = ::fstat(content->get(), &status) == 0 && S_ISREG(status.st_mode) &&
                        static_cast<std::uint64_t>(status.st_size) == change.size &&
                        content_sha256(content->get()).value_or("") == change.sha256;
  if (!is_sound) return std::unexpected(Errno{EILSEQ});
  return std::move(*content);
}

bool has_new_content(const Change& change, int parent_fd, const std::string& name, const struct stat& status) {
  if (static_cast<std::uint64_t>(status.st_size) != change.size) return false;
  if (((status.st_mode & S_IXUSR) != 0) != change.is_executable) return false;
  const auto there = host::open_on_same_mount(parent_fd, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  return there && content_sha256(there->get()).value_or("") == change.sha256;
}

bool is_link_to(int parent_fd, const std::string& name, const std::string& target) {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlinkat(parent_fd, name.c_str(), text.data(), text.size());
  return length >= 0 && std::string_view(text.data(), static_cast<std::size_t>(length)) == target;
}

// Nothing but its last change (of st_ctim) tells it from the file that was there, and its content is that one's.
bool is_only_renamed_elsewhere(const Change& change, const FileStamp& now, int parent_fd, const std::string& name) {
  FileStamp same_change = now;
  same_change.changed_ns = change.before.changed_ns;
  if (change.before_sha256.empty() || same_change != change.before) return false;
  const auto there = host::open_on_same_mount(parent_fd, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  return there && content_sha256(there->get()).value_or("") == change.before_sha256;
}

// The host has something of the change's kind at its place.
HostSide compare_with_present(const Change& change, int parent_fd, const std::string& name, const struct stat& status) {
  const FileStamp now = stamp_of(status);
  // A folder's own times change with what is in it.
  const bool is_same = change.kind == FileKind::folder ? now.inode == change.before.inode : now == change.before;
  if (change.change != FileChange::added && (is_same || is_only_renamed_elsewhere(change, now, parent_fd, name))) {
    return HostSide::as_before;
  }
  if (change.change == FileChange::deleted) return HostSide::different;
  bool is_done = false;
  if (change.kind == FileKind::regular) is_done = has_new_content(change, parent_fd, name, status);
  if (change.kind == FileKind::folder) is_done = true;
  if (change.kind == FileKind::link) is_done = is_link_to(parent_fd, name, change.link_target);
  return is_done ? HostSide::as_changed : HostSide::different;
}

class Application {
 public:
  Application(KeptChangeset& kept, std::span<const std::string> paths, int workspace_fd)
      : kept_(kept), paths_(paths), workspace_fd_(workspace_fd) {
    for (const Change& change : kept.changeset.changes) {
      if (change.in_git_folder) git_folders_.insert(split(change.path).folder);
    }
  }

  Result<Applied> apply();

 private:
  std::optional<LeftOut> refuse(const Change& change);
  void leave_out(const Change& change, LeftOut because);
  bool is_named(std::string_view path) const;
  bool will_be_git_folder(const std::string& path) const;
  bool gives_way(const std::string& path) const;
  void leave_out_halves(std::vector<const Change*>* allowed);
  Result<void> check_host_side(const std::vector<const Change*>& changes);
  SysResult<void> carry_out(const Change& change);
  SysResult<void> put_in_place(const Change& change, int parent_fd, const std::string& name);
  SysResult<void> put_file(const Change& change, int parent_fd, const std::string& name);
  SysResult<void> put_link(const Change& change, int parent_fd, const std::string& name);
  void try_to(const Change& change);

  KeptChangeset& kept_;
  std::span<const std::string> paths_;
  int workspace_fd_;
  std::set<std::string> git_folders_;                                // by what changes in them
  std::set<std::string, std::less<>> deleted_;                       // paths that this application deletes
  std::vector<Change> left_;                                         // what stays kept
  std::map<std::pair<std::string, std::string>, std::size_t> rows_;  // of result_.left_out, by path and reason
  Applied result_;
};

// At the path, or at something below it: who names .git/hooks/x means it.
bool Application::is_named(std::string_view path) const {
  return std::ranges::any_of(paths_, [&](const std::string& named) { return is_at_or_below(named, path); });
}

// As the program left it, or as it is on the host.
bool Application::will_be_git_folder(const std::string& path) const {
  if (git_folders_.contains(path)) return true;
  const auto folder = open_parent(workspace_fd_, path);
  return folder && is_git_folder(folder->get());
}

// Goes down the path as the host's tools would see it, to the first part that is protected.
std::optional<LeftOut> Application::refuse(const Change& change) {
  const std::string& workspace = kept_.changeset.workspace;
  std::string parent_key = name_key(workspace.substr(workspace.rfind('/') + 1));
  for (std::size_t start = 0; start <= change.path.size();) {
    const std::size_t slash = std::min(change.path.find('/', start), change.path.size());
    const bool is_last = slash == change.path.size();
    const std::string key = name_key(change.path.substr(start, slash - start));
    const FileKind kind = is_last ? change.kind : FileKind::folder;
    std::string_view why = why_protected(parent_key, key, kind);
    if (why.empty()) {
      const std::string_view in_git_folder = why_protected(kGitFolderKey, key, kind);
      const std::string above = start == 0 ? "." : change.path.substr(0, start - 1);
      if (!in_git_folder.empty() && will_be_git_folder(above)) why = in_git_folder;
    }
    std::string path = change.path.substr(0, slash);
    if (!why.empty() && !is_named(path)) {
      std::string reason = fmt::format("{}; to apply it all the same, name {}", why, quote(path));
      return LeftOut{std::move(path), std::move(reason)};
    }
    parent_key = folder_key(parent_key, key);
    start = slash + 1;
  }
  const bool is_new_link = change.kind == FileKind::link && change.change != FileChange::deleted;
  if (!is_new_link || std::ranges::find(paths_, change.path) != paths_.end()) return std::nullopt;
  return LeftOut{change.path,
                 fmt::format("a symbolic link, to {}; to make it all the same, name it", quote(change.link_target))};
}

void Application::leave_out(const Change& change, LeftOut because) {
  left_.push_back(change);
  const auto [row, is_new] = rows_.try_emplace({because.path, because.reason}, result_.left_out.size());
  if (is_new) {
    result_.left_out.push_back(std::move(because));
  } else {
    ++result_.left_out[row->second].changes;
  }
}

// Whether what is in the way at `path`, or above it, is deleted first.
bool Application::gives_way(const std::string& path) const {
  for (std::string above = path;; above = split(above).folder) {
    if (deleted_.contains(above)) return true;
    if (above == ".") return false;
  }
}

Result<void> Application::check_host_side(const std::vector<const Change*>& changes) {
  std::string different;
  std::size_t count = 0;
  for (const Change* change : changes) {
    if (compare_host_side(*change, workspace_fd_) != HostSide::different) continue;
    if (change->change == FileChange::added && gives_way(change->path)) continue;
    if (count++ < kPathsShown) different += fmt::format("{}{}", count > 1 ? ", " : "", quote(change->path));
  }
  if (count == 0) return {};
  if (count > kPathsShown) different += fmt::format(" and {} more", count - kPathsShown);
  return fail(
      ErrorCode::bad_changes,
      fmt::format("nothing was applied: on the host these are not as they were when the run began: {}; name the "
                  "paths that are to be applied without them",
                  different));
}

SysResult<void> Application::put_file(const Change& change, int parent_fd, const std::string& name) {
  const Fd content = TRY(open_content(kept_, change));
  struct stat before{};
  const bool replaces = change.change == FileChange::modified;
  if (replaces && ::fstatat(parent_fd, name.c_str(), &before, AT_SYMLINK_NOFOLLOW) != 0)
    return std::unexpected(Errno{errno});
  Installation installation{.content_fd = content.get(),
                            .folder_fd = parent_fd,
                            .name = name,
                            .temporary_name = temporary_name(kept_),
                            .is_executable = change.is_executable};
  if (replaces) installation.replaced = &before;
  return install_file(installation);
}

SysResult<void> Application::put_link(const Change& change, int parent_fd, const std::string& name) {
  if (change.change == FileChange::added) {
    if (::symlinkat(change.link_target.c_str(), parent_fd, name.c_str()) == 0) return {};
    return std::unexpected(Errno{errno});
  }
  const std::string temporary = temporary_name(kept_);
  if (::symlinkat(change.link_target.c_str(), parent_fd, temporary.c_str()) == 0 &&
      ::renameat(parent_fd, temporary.c_str(), parent_fd, name.c_str()) == 0) {
    return {};
  }
  const int error = errno;
  ::unlinkat(parent_fd, temporary.c_str(), 0);
  return std::unexpected(Errno{error});
}

SysResult<void> Application::put_in_place(const Change& change, int parent_fd, const std::string& name) {
  int result = 0;
  if (change.change == FileChange::deleted) {
    result = ::unlinkat(parent_fd, name.c_str(), change.kind == FileKind::folder ? AT_REMOVEDIR : 0);
  } else if (change.kind == FileKind::folder) {
    result = ::mkdirat(parent_fd, name.c_str(), kNewFolderMode);
  } else {
    return change.kind == FileKind::link ? put_link(change, parent_fd, name) : put_file(change, parent_fd, name);
  }
  return result == 0 ? SysResult<void>() : std::unexpected(Errno{errno});
}

SysResult<void> Application::carry_out(const Change& change) {
  // Looked at again, as close to the change as it can be.
  switch (compare_host_side(change, workspace_fd_)) {
    case HostSide::as_changed:
      return {};
    case HostSide::different:
      return std::unexpected(Errno{ESTALE});
    case HostSide::as_before:
      break;
  }
  const SplitPath path = split(change.path);
  const Fd parent = TRY(change.change == FileChange::added ? make_parent(workspace_fd_, path.folder)
                                                           : open_parent(workspace_fd_, path.folder));
  return put_in_place(change, parent.get(), path.name);
}

void Application::try_to(const Change& change) {
  const SysResult<void> done = carry_out(change);
  if (done) {
    result_.applied.push_back(change);
    return;
  }
  const int error = done.error().value;
  const bool is_full = change.kind == FileKind::folder && error == ENOTEMPTY;
  const char* why = is_full ? "the folder is not empty on the host" : errno_text(error);
  if (error == ESTALE) why = "it is not as it was when the run began";
  if (error == ENODATA) why = "its new content is not kept any more";
  if (error == EILSEQ) why = "its kept content is damaged";
  leave_out(change, {change.path, why});
}

// Where a part of something is left out, the rest is too: what was to be removed for what does not come, what was to
// come in the place of what stays, and the other parts of a repository.
void Application::leave_out_halves(std::vector<const Change*>* allowed) {
  const auto because = [](const Change& refused, const Change& other) -> std::optional<LeftOut> {
    const bool is_removal = other.change == FileChange::deleted;
    const bool is_same_place = is_at_or_below(other.path, refused.path);
    if (refused.change != FileChange::deleted) {
      if (!is_removal || !is_same_place) return std::nullopt;
      return LeftOut{refused.path, "what comes in its place is left out"};
    }
    if (!is_removal) {
      if (!is_same_place) return std::nullopt;
      return LeftOut{refused.path, "what it would take the place of stays"};
    }
    std::string git_folder = git_folder_above(refused.path);
    if (git_folder.empty() || !is_at_or_below(other.path, git_folder)) return std::nullopt;
    return LeftOut{std::move(git_folder), "other parts of this repository stay"};
  };
  for (std::size_t next = 0; next < left_.size(); ++next) {
    const Change refused = left_[next];
    std::erase_if(*allowed, [&](const Change* other) {
      std::optional<LeftOut> left = because(refused, *other);
      if (!left) return false;
      leave_out(*other, std::move(*left));
      return true;
    });
  }
}

Result<Applied> Application::apply() {
  const std::vector<const Change*> selected = TRY(select_changes(kept_.changeset, paths_));
  const std::set<const Change*> is_selected(selected.begin(), selected.end());
  std::vector<const Change*> allowed;
  for (const Change& change : kept_.changeset.changes) {
    if (!is_selected.contains(&change)) {
      left_.push_back(change);
      continue;
    }
    if (std::optional<LeftOut> refused = refuse(change)) {
      leave_out(change, std::move(*refused));
    } else {
      allowed.push_back(&change);
    }
  }
  leave_out_halves(&allowed);
  for (const Change* change : allowed) {
    if (change->change == FileChange::deleted) deleted_.insert(change->path);
  }
  TRY_VOID(check_host_side(allowed));
  // Folders are emptied before they are removed, and made before they are filled.
  for (auto change = allowed.rbegin(); change != allowed.rend(); ++change) {
    if ((*change)->change == FileChange::deleted) try_to(**change);
  }
  for (const Change* change : allowed) {
    if (change->change != FileChange::deleted) try_to(*change);
  }
  std::ranges::stable_sort(
      left_, {}, [](const Change& change) { return std::pair(change.path, change.change != FileChange::deleted); });
  kept_.changeset.changes = std::move(left_);
  return std::move(result_);
}

}  // namespace

Result<Fd> open_changed_folder(const Changeset& changeset) {
  const auto gone = [&](std::string_view why) {
    return fail(ErrorCode::bad_changes, fmt::format("{}: {}", one_line(changeset.workspace), why));
  };
  auto folder = host::open_without_links(changeset.workspace.c_str(), O_PATH | O_DIRECTORY);
  if (!folder) return gone(errno_text(folder.error().value));
  struct stat status{};
  if (::fstat(folder->get(), &status) != 0) return gone(errno_text(errno));
  if (status.st_dev == changeset.device && status.st_ino == changeset.inode) return std::move(*folder);
  return gone("this is not the folder any more in which the changes were made");
}

HostSide compare_host_side(const Change& change, int workspace_fd) {
  const HostSide absent = change.change == FileChange::added     ? HostSide::as_before
                          : change.change == FileChange::deleted ? HostSide::as_changed
                                                                 : HostSide::different;
  const SplitPath path = split(change.path);
  const auto parent = open_parent(workspace_fd, path.folder);
  if (!parent) return parent.error().value == ENOENT ? absent : HostSide::different;
  struct stat status{};
  if (::fstatat(parent->get(), path.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? absent : HostSide::different;
  }
  if (kind_of_mode(status.st_mode) != change.kind) return HostSide::different;
  return compare_with_present(change, parent->get(), path.name, status);
}

Result<std::vector<const Change*>> select_changes(const Changeset& changeset, std::span<const std::string> paths) {
  std::vector<const Change*> selected;
  std::set<std::string_view> used;
  for (const Change& change : changeset.changes) {
    bool is_wanted = paths.empty();
    for (const std::string& path : paths) {
      if (!is_at_or_below(change.path, path)) continue;
      is_wanted = true;
      used.insert(path);
    }
    if (is_wanted) selected.push_back(&change);
  }
  for (const std::string& path : paths) {
    if (used.contains(path)) continue;
    return fail(ErrorCode::bad_changes,
                fmt::format("nothing was changed at {}; belljar changes diff shows the paths, which begin below {}",
                            quote(path), one_line(changeset.workspace)));
  }
  return selected;
}

void clear_leftovers(const KeptChangeset& kept, int workspace_fd) {
  const std::string name = temporary_name(kept);
  std::string last;
  for (const Change& change : kept.changeset.changes) {
    const std::string folder = split(change.path).folder;
    if (folder == last) continue;
    last = folder;
    const auto parent = open_parent(workspace_fd, folder);
    if (parent) ::unlinkat(parent->get(), name.c_str(), 0);
  }
}

Result<Applied> apply_changes(KeptChangeset& kept, std::span<const std::string> paths) {
  const Fd workspace = TRY(open_changed_folder(kept.changeset));
  clear_leftovers(kept, workspace.get());
  return Application(kept, paths, workspace.get()).apply();
}

}  // namespace belljar
