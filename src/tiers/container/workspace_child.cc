#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "host/mount.h"
#include "host/open_path.h"
#include "tiers/container/init_steps_child.h"

namespace belljar::container {
namespace {

constexpr SetupStep kStep = SetupStep::workspace;

// On the writable space, which is mounted at /tmp for now; nothing of it but its own folders is seen later.
constexpr const char* kUpper = "/tmp/workspace";
constexpr const char* kWork = "/tmp/workspace.work";

// An overlayfs that belongs to a user namespace keeps its marks in the user's extended attributes ("userxattr"), which
// tmpfs has since Linux 6.6.
bool keeps_user_attributes(const char* path) {
  constexpr const char* kName = "user.belljar";
  return ::setxattr(path, kName, "", 0, 0) == 0 && ::removexattr(path, kName) == 0;
}

// A detached overlayfs over the workspace (mount(8), "overlay"); -errno where this host, or the file system of the
// workspace, has none. Without redirects and metadata-only copies, so that what is in the upper folder is complete.
int new_overlay(const InitMount& mount, int mount_fd, int place) {
  if (mount.must_be_copied || !keeps_user_attributes(kUpper)) return -EOPNOTSUPP;
  if (::mkdir(kWork, 0700) != 0) return -errno;
  // Only for as long as the overlayfs is being made: it then holds a mount of its own.
  const int attached = host::attach_mount(mount_fd, place, "");
  if (attached < 0) return attached;
  const host::FilesystemOption options[] = {{"lowerdir", mount.target}, {"upperdir", kUpper}, {"workdir", kWork},
                                            {"userxattr", nullptr},     {"index", "off"},     {"metacopy", "off"}};
  const int overlay =
      host::new_filesystem("overlay", options, std::size(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (::umount2(mount.target, MNT_DETACH) != 0) return -errno;
  return overlay;
}

// Copies the workspace's tree where there is no overlayfs: files, folders and links.
class TreeCopy {
 public:
  explicit TreeCopy(const InitPlan& plan) : plan_(plan) {}

  // Both descriptors are open folders, which this closes.
  void copy_folder(int from, int to, unsigned depth) {
    if (depth > kWorkspaceDepthMax) give_up(plan_, kStep, -ENAMETOOLONG);
    alignas(dirent64) char buffer[4096];
    while (true) {
      const ssize_t size = ::getdents64(from, buffer, sizeof buffer);
      if (size < 0) give_up(plan_, kStep, -errno);
      if (size == 0) break;
      for (ssize_t at = 0; at < size;) {
        const auto* const entry = reinterpret_cast<const dirent64*>(buffer + at);
        at += entry->d_reclen;
        if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
        copy_entry(from, to, entry->d_name, depth);
      }
    }
    ::close(from);
    ::close(to);
  }

 private:
  void copy_entry(int from, int to, const char* name, unsigned depth) {
    struct stat status{};
    if (::fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) != 0) give_up(plan_, kStep, -errno);
    const unsigned mode = status.st_mode & 0777;
    if (S_ISDIR(status.st_mode)) {
      check(plan_, kStep, errno_result(::mkdirat(to, name, mode | S_IRWXU)));
      // What is mounted on a folder is not part of the workspace.
      SysResult<Fd> inner = host::open_on_same_mount(from, name, O_RDONLY | O_DIRECTORY);
      if (inner) {
        const int inner_to =
            check(plan_, kStep, errno_result(::openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
        copy_folder(inner->release(), inner_to, depth + 1);
      } else if (inner.error().value != EXDEV) {
        give_up(plan_, kStep, -inner.error().value);
      }
    } else if (S_ISREG(status.st_mode)) {
      copy_file(from, to, name, mode);
    } else if (S_ISLNK(status.st_mode)) {
      char target[4097];
      const int length = check(plan_, kStep, errno_result(::readlinkat(from, name, target, sizeof target - 1)));
      target[length] = '\0';
      check(plan_, kStep, errno_result(::symlinkat(target, to, name)));
    } else {
      return;
    }
    if (plan_.privilege == Privilege::root) {
      check(plan_, kStep, errno_result(::fchownat(to, name, plan_.ids.uid, plan_.ids.gid, AT_SYMLINK_NOFOLLOW)));
    }
    const timespec times[2] = {status.st_atim, status.st_mtim};
    check(plan_, kStep, errno_result(::utimensat(to, name, times, AT_SYMLINK_NOFOLLOW)));
  }

  void copy_file(int from, int to, const char* name, unsigned mode) {
    const int source =
        check(plan_, kStep, errno_result(::openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)));
    const int copy =
        check(plan_, kStep, errno_result(::openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)));
    while (check(plan_, kStep, errno_result(::sendfile(copy, source, nullptr, std::size_t{1} << 20))) > 0) {
    }
    ::close(source);
    ::close(copy);
  }

  const InitPlan& plan_;
};

}  // namespace

WorkspaceForm mount_workspace(const InitPlan& plan, const InitMount& mount, int mount_fd, int place) {
  check(plan, kStep, errno_result(::mkdir(kUpper, 0755)));
  if (plan.privilege == Privilege::root) {
    check(plan, kStep, errno_result(::chown(kUpper, plan.ids.uid, plan.ids.gid)));
  }
  const int overlay = new_overlay(mount, mount_fd, place);
  if (overlay >= 0) {
    check(plan, kStep, host::attach_mount(overlay, place, ""));
    ::close(overlay);
    return WorkspaceForm::overlay;
  }
  const int from = check(plan, kStep, errno_result(::openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  const int to = check(plan, kStep, errno_result(::open(kUpper, O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  TreeCopy(plan).copy_folder(from, to, 0);
  const int copy = check(plan, kStep, host::clone_mount(AT_FDCWD, kUpper, host::Recursion::no));
  check(plan, kStep, host::attach_mount(copy, place, ""));
  ::close(copy);
  return WorkspaceForm::copy;
}

}  // namespace belljar::container
