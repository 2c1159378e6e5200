#include "files/workspace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "base/utf8.h"
#include "host/open_path.h"
#include "spec/errors.h"
#include "spec/sandbox_spec.h"

namespace belljar {
namespace {

constexpr std::int64_t kNsPerS = 1'000'000'000;

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * kNsPerS + time.tv_nsec;
}

class WorkspaceScan {
 public:
  WorkspaceScan(const std::string& path, std::uint64_t entries_max)
      : path_(path), entries_max_(entries_max), entries_left_(entries_max) {}

  std::unexpected<Error> refuse(std::string_view why) const {
    return fail(ErrorCode::bad_workspace, fmt::format("--workspace {}: {}", one_line(path_), why));
  }

  std::uint64_t entries() const { return entries_max_ - entries_left_; }

  Result<void> read_children(int folder_fd, unsigned depth, WorkspaceEntry& folder) {
    if (depth > kWorkspaceDepthMax)
      return refuse(fmt::format("folders are more than {} deep inside each other", kWorkspaceDepthMax));
    const auto listing = list_folder(folder_fd, entries_left_);
    if (!listing) return refuse(errno_text(listing.error().value));
    if (listing->is_cut) {
      return refuse(
          fmt::format("it holds more than {} files and folders (--workspace-entries allows more)", entries_max_));
    }
    entries_left_ -= listing->entries.size();
    folder.children.reserve(listing->entries.size());
    for (const FolderEntry& entry : listing->entries) TRY_VOID(read_entry(folder_fd, entry.name, depth, folder));
    return {};
  }

 private:
  Result<void> read_entry(int folder_fd, const std::string& name, unsigned depth, WorkspaceEntry& folder) {
    struct stat status{};
    if (::fstatat(folder_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno == ENOENT ? Result<void>() : refuse(errno_text(errno));
    }
    WorkspaceEntry& entry = folder.children.emplace_back();
    entry.name = name;
    entry.kind = kind_of_mode(status.st_mode);
    entry.stamp = stamp_of(status);
    entry.is_executable = (status.st_mode & S_IXUSR) != 0;
    entry.has_other_names = entry.kind == FileKind::regular && status.st_nlink > 1;
    if (entry.kind == FileKind::link) {
      std::array<char, PATH_MAX> target{};
      const ssize_t length = ::readlinkat(folder_fd, name.c_str(), target.data(), target.size());
      if (length > 0) entry.link_target.assign(target.data(), static_cast<std::size_t>(length));
    }
    if (entry.kind != FileKind::folder) return {};
    // What can't be read here can't be read inside either, and what is mounted on a folder is not part of it.
    const auto inner = host::open_on_same_mount(folder_fd, name.c_str(), O_RDONLY | O_DIRECTORY);
    return inner ? read_children(inner->get(), depth + 1, entry) : Result<void>();
  }

  const std::string& path_;
  std::uint64_t entries_max_;
  std::uint64_t entries_left_;
};

}  // namespace

FileStamp stamp_of(const struct stat& status) {
  return {.size = static_cast<std::uint64_t>(status.st_size),
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim),
          .inode = status.st_ino};
}

const WorkspaceEntry* WorkspaceEntry::find(std::string_view child) const {
  const auto found =
      std::ranges::lower_bound(children, child, {}, [](const WorkspaceEntry& e) -> std::string_view { return e.name; });
  return found != children.end() && found->name == child ? &*found : nullptr;
}

Result<Workspace> open_workspace(const std::string& path, std::uint64_t entries_max) {
  WorkspaceScan scan(path, entries_max);
  auto folder = host::open_without_links(path.c_str(), O_PATH | O_DIRECTORY);
  if (!folder) {
    const int error = folder.error().value;
    if (error == ELOOP) {
      return scan.refuse(
          "a part of this path is a symbolic link, which a program may have made; name the folder itself");
    }
    return scan.refuse(error == ENOTDIR ? "this is not a folder" : errno_text(error));
  }
  auto real = host::path_of(folder->get());
  if (!real) return scan.refuse(fmt::format("can't tell where it is: {}", errno_text(real.error().value)));
  struct stat status{};
  if (::fstat(folder->get(), &status) != 0) return scan.refuse(errno_text(errno));
  const auto readable = open_at(folder->get(), ".", O_RDONLY | O_DIRECTORY);
  if (!readable) return scan.refuse(errno_text(readable.error().value));
  Workspace workspace{
      .folder = std::move(*folder), .path = std::move(*real), .device = status.st_dev, .inode = status.st_ino};
  workspace.root.kind = FileKind::folder;
  TRY_VOID(scan.read_children(readable->get(), 0, workspace.root));
  workspace.entries = scan.entries();
  return workspace;
}

}  // namespace belljar
