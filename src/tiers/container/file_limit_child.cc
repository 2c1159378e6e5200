#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "tiers/container/init_steps_child.h"

namespace belljar::container {
namespace {

constexpr unsigned kEntriesMax = 20000;
constexpr unsigned kDepthMax = 30;

// Looks for a file of one size. What is named changes while it looks, and is only ever looked at.
class FileSearch {
 public:
  explicit FileSearch(std::uint64_t bytes) : bytes_(bytes) {}

  bool finds(int folder_fd, const char* name, unsigned depth) {
    struct stat status{};
    if (entries_left_ == 0 || ::fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    --entries_left_;
    if (S_ISREG(status.st_mode)) return static_cast<std::uint64_t>(status.st_size) == bytes_;
    if (!S_ISDIR(status.st_mode) || depth == kDepthMax) return false;
    const int folder = ::openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return false;
    const bool is_found = finds_in(folder, depth);
    ::close(folder);
    return is_found;
  }

 private:
  bool finds_in(int folder_fd, unsigned depth) {
    alignas(DirectoryEntry) char entries[4096];
    while (true) {
      const long count = ::syscall(SYS_getdents64, folder_fd, entries, sizeof entries);
      if (count <= 0) return false;
      for (long offset = 0; offset < count;) {
        const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + offset);
        offset += entry->length;
        const bool is_dots =
            entry->name[0] == '.' && (entry->name[1] == '\0' || (entry->name[1] == '.' && entry->name[2] == '\0'));
        if (!is_dots && finds(folder_fd, entry->name, depth + 1)) return true;
      }
    }
  }

  std::uint64_t bytes_;
  unsigned entries_left_ = kEntriesMax;
};

}  // namespace

bool has_file_at_limit(const InitPlan& plan) {
  FileSearch search(plan.file_size);
  const auto has = [&search](const char* place) { return search.finds(AT_FDCWD, place, 0); };
  return plan.file_size > 0 && (has("/tmp") || std::ranges::any_of(plan.own_folders, has) ||
                                std::ranges::any_of(plan.mounts, [&](const InitMount& mount) {
                                  return mount.changes_allowed && has(mount.target);
                                }));
}

}  // namespace belljar::container
