#include <fcntl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/descriptors.h"
#include "host/mount.h"
#include "tiers/container/init_steps_child.h"

namespace belljar::container {
namespace {

constexpr std::uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr const char* kDeviceNodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
constexpr unsigned kDeviceNodeCount = sizeof kDeviceNodes / sizeof *kDeviceNodes;

// What of /proc is hidden: what everyone may read there of the host, its hardware and its kernel, and no program needs.
// The rest is readable or writable for the host's root only, and no user of the sandbox is that; but for settings of
// the sandbox's own namespaces: see lock_settings().
constexpr const char* kMaskedProcFiles[] = {"keys", "key-users", "kallsyms", "cmdline", "modules", "locks"};
constexpr const char* kMaskedProcFolders[] = {"acpi", "bus", "fs", "scsi", "asound", "pressure"};
constexpr const char* kEmptyFile = "/.empty";
constexpr const char* kEmptyFolder = "/.empty.d";

// Mounts cloned by init itself; at most as many as could be passed.
struct ClonedMounts {
  int fds[kPassedFdsMax];
  int devices[kDeviceNodeCount];
};

// Privilege::user: the caller can't clone mounts on the host side, and a clone needs a descriptor of this mount
// namespace. So each source is opened again here and must be the very inode that was checked outside.
void clone_own_mounts(const InitPlan& plan, ClonedMounts* cloned) {
  int index = 0;
  for (const InitMount& mount : plan.mounts) {
    const int fd =
        check(plan, SetupStep::open_source, errno_result(::open(mount.source, O_PATH | O_CLOEXEC | O_NOFOLLOW)), index);
    struct stat status{};
    check(plan, SetupStep::open_source, errno_result(::fstat(fd, &status)), index);
    if (status.st_dev != mount.device || status.st_ino != mount.inode) {
      give_up(plan, SetupStep::source_changed, -ESTALE, index);
    }
    const int copy = check(plan, SetupStep::open_source, host::clone_mount(fd, "", host::Recursion::yes), index);
    check(plan, SetupStep::open_source, host::set_mount_attributes(copy, mount.attributes, -1, host::Recursion::yes),
          index);
    ::close(fd);
    cloned->fds[index++] = copy;
  }
  if (plan.dev_is_mounted) return;
  const int dev = check(plan, SetupStep::mount_dev, errno_result(::open("/dev", O_PATH | O_CLOEXEC | O_DIRECTORY)));
  for (unsigned i = 0; i < kDeviceNodeCount; ++i) {
    cloned->devices[i] =
        check(plan, SetupStep::mount_dev, host::clone_mount(dev, kDeviceNodes[i], host::Recursion::no));
    // The host's own nodes: their times and modes are not the program's to change. Devices are written to all the same.
    constexpr std::uint64_t kLocked = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
    check(plan, SetupStep::mount_dev, host::set_mount_attributes(cloned->devices[i], kLocked, -1, host::Recursion::no));
  }
  ::close(dev);
}

// The next step of a walk: the folder `name` in `folder_fd`, made where it is missing. Never through a link: one in a
// caller's mount may be an earlier program's, and would have a mount land on a wall.
int step_into(const InitPlan& plan, int folder_fd, const char* name, SetupStep step, int detail) {
  if (::mkdirat(folder_fd, name, 0755) != 0 && errno != EEXIST && errno != EROFS) give_up(plan, step, -errno, detail);
  const int next = ::openat(folder_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (next >= 0) return next;
  const int error = errno;
  struct stat status{};
  const bool is_link = ::fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
  give_up(plan, step, is_link ? -ELOOP : -error, detail);
}

// mkdir -p of the first `length` bytes of a path in the new root; returns a descriptor (O_PATH) of the last folder.
int make_folder(const InitPlan& plan, const char* path, std::size_t length, SetupStep step, int detail) {
  int folder = check(plan, step, errno_result(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)), detail);
  for (std::size_t start = 0; start < length;) {
    char name[256];
    std::size_t size = 0;
    for (; start + size < length && path[start + size] != '/'; ++size) {
      if (size + 1 >= sizeof name) give_up(plan, step, -ENAMETOOLONG, detail);
      name[size] = path[start + size];
    }
    name[size] = '\0';
    start += size + 1;
    if (size == 0) continue;
    const int next = step_into(plan, folder, name, step, detail);
    ::close(folder);
    folder = next;
  }
  return folder;
}

void make_file(const InitPlan& plan, const char* path, const std::string_view* content, SetupStep step,
               int detail = 0) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0444);
  if (fd < 0) {
    struct stat status{};
    if (content == nullptr && ::lstat(path, &status) == 0 && !S_ISDIR(status.st_mode)) return;  // there already
    give_up(plan, step, -errno, detail);
  }
  if (content != nullptr) {
    const char* rest = content->data();
    std::size_t left = content->size();
    while (left > 0) {
      const ssize_t count = ::write(fd, rest, left);
      if (count < 0) give_up(plan, step, -errno, detail);
      rest += count;
      left -= static_cast<std::size_t>(count);
    }
  }
  ::close(fd);
}

// The length of the part before the last slash.
std::size_t parent_length(const char* path) {
  return static_cast<std::size_t>(std::strrchr(path, '/') - path);
}

void make_parents(const InitPlan& plan, const char* path, SetupStep step, int detail) {
  ::close(make_folder(plan, path, parent_length(path), step, detail));
}

// A place for mount `index` to be attached at: a folder or an empty file, there already or made. Returns a descriptor
// of it.
int make_target(const InitPlan& plan, const InitMount& mount, int index) {
  constexpr SetupStep kStep = SetupStep::mount;
  const char* target = mount.target;
  if (mount.is_folder) return make_folder(plan, target, std::strlen(target), kStep, index);
  const std::size_t slash = parent_length(target);
  const int folder = make_folder(plan, target, slash, kStep, index);
  const int made = ::openat(folder, target + slash + 1, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0444);
  if (made >= 0) ::close(made);
  const int place =
      check(plan, kStep, errno_result(::openat(folder, target + slash + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC)), index);
  struct stat status{};
  check(plan, kStep, errno_result(::fstat(place, &status)), index);
  if (S_ISLNK(status.st_mode)) give_up(plan, kStep, -ELOOP, index);
  ::close(folder);
  return place;
}

enum class MountOwner { image, caller };

// The image goes in first, because the caller's folders may lie below /tmp, HOME or /usr.
void attach_mounts(const InitPlan& plan, const int* mount_fds, MountOwner owner) {
  int index = -1;
  for (const InitMount& mount : plan.mounts) {
    ++index;
    if (mount.is_caller_mount != (owner == MountOwner::caller) || mount.is_workspace) continue;
    const int place = make_target(plan, mount, index);
    check(plan, SetupStep::mount, host::attach_mount(mount_fds[index], place, ""), index);
    ::close(place);
    ::close(mount_fds[index]);
  }
}

// The folders that SandboxSpec::collect names, on the tmpfs that is mounted at /tmp for now. In it they are called "0",
// "1" and so on.
void mount_own_folders(const InitPlan& plan) {
  constexpr SetupStep kStep = SetupStep::mount_writable;
  unsigned index = 0;
  for (const char* target : plan.own_folders) {
    char name[] = "/tmp/0";
    name[sizeof name - 2] = static_cast<char>('0' + index++);
    check(plan, kStep, errno_result(::mkdir(name, 0755)));
    if (plan.privilege == Privilege::root) {
      check(plan, kStep, errno_result(::chown(name, plan.ids.uid, plan.ids.gid)));
    }
    const int folder = check(plan, kStep, host::clone_mount(AT_FDCWD, name, host::Recursion::no));
    const int place = make_folder(plan, target, std::strlen(target), kStep, 0);
    check(plan, kStep, host::attach_mount(folder, place, ""));
    ::close(place);
    ::close(folder);
  }
}

WorkspaceForm mount_planned_workspace(const InitPlan& plan, const int* mount_fds) {
  int index = -1;
  for (const InitMount& mount : plan.mounts) {
    ++index;
    if (!mount.is_workspace) continue;
    const int place = make_target(plan, mount, index);
    const WorkspaceForm form = mount_workspace(plan, mount, mount_fds[index], place);
    ::close(place);
    ::close(mount_fds[index]);
    return form;
  }
  return WorkspaceForm::none;
}

// Places under one tmpfs, so that one limit on bytes and inodes bounds all: /tmp, /dev/shm, plan.own_folders and what
// the program changes of the workspace.
void mount_writable_space(const InitPlan& plan, const int* mount_fds) {
  constexpr SetupStep kStep = SetupStep::mount_writable;
  const host::FilesystemOption options[] = {{"size", plan.tmp_size}, {"nr_inodes", plan.tmp_inodes}, {"mode", "0755"}};
  const int space = check(plan, kStep, host::new_filesystem("tmpfs", options, 3, kQuiet));
  check(plan, kStep, host::attach_mount(space, AT_FDCWD, "/tmp"));
  for (const char* name : {"/tmp/tmp", "/tmp/shm"}) {
    check(plan, kStep, errno_result(::mkdir(name, 0777)));
    check(plan, kStep, errno_result(::chmod(name, 01777)));
  }
  mount_own_folders(plan);
  const WorkspaceForm workspace = mount_planned_workspace(plan, mount_fds);
  const int shm = check(plan, kStep, host::clone_mount(AT_FDCWD, "/tmp/shm", host::Recursion::no));
  const int tmp = check(plan, kStep, host::clone_mount(AT_FDCWD, "/tmp/tmp", host::Recursion::no));
  check(plan, kStep, host::attach_mount(tmp, AT_FDCWD, "/tmp"));
  check(plan, kStep, host::attach_mount(shm, AT_FDCWD, "/dev/shm"));
  check(plan, SetupStep::home, errno_result(::mkdir(kHome, 0700)));
  if (plan.privilege == Privilege::root) {
    check(plan, SetupStep::home, errno_result(::chown(kHome, plan.ids.uid, plan.ids.gid)));
  }
  // It shows the tmpfs alone, without what is mounted on its other mounts, and keeps it when this mount namespace is
  // gone.
  const bool is_kernels = plan.kernel_fds > 0;  // whose files lie in its arena
  if (plan.space_link >= 0 && !is_kernels) hand_over_space(plan, space, workspace);
  ::close(shm);
  ::close(tmp);
  ::close(space);
}

void fill_dev(const InitPlan& plan, const ClonedMounts& cloned) {
  constexpr SetupStep kStep = SetupStep::mount_dev;
  if (!plan.dev_is_mounted) {
    char path[32] = "/dev/";
    for (unsigned i = 0; i < kDeviceNodeCount; ++i) {
      std::strcpy(path + 5, kDeviceNodes[i]);
      make_file(plan, path, nullptr, kStep);
      check(plan, kStep, host::attach_mount(cloned.devices[i], AT_FDCWD, path));
      ::close(cloned.devices[i]);
    }
    check(plan, kStep, errno_result(::symlink("/proc/self/fd", "/dev/fd")));
    check(plan, kStep, errno_result(::symlink("/proc/self/fd/0", "/dev/stdin")));
    check(plan, kStep, errno_result(::symlink("/proc/self/fd/1", "/dev/stdout")));
    check(plan, kStep, errno_result(::symlink("/proc/self/fd/2", "/dev/stderr")));
    check(plan, kStep, errno_result(::symlink("pts/ptmx", "/dev/ptmx")));
    check(plan, kStep, errno_result(::mkdir("/dev/pts", 0755)));
    check(plan, kStep, errno_result(::mkdir("/dev/mqueue", 0755)));
    check(plan, kStep, errno_result(::mkdir("/dev/shm", 0755)));
  }
  const host::FilesystemOption options[] = {{"ptmxmode", "0666"}, {"mode", "0600"}};
  const int pts = check(plan, kStep, host::new_filesystem("devpts", options, 2, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  check(plan, kStep, host::attach_mount(pts, AT_FDCWD, "/dev/pts"));
  ::close(pts);
  // The queues of the sandbox's own IPC namespace (mq_overview(7)); mounted, so that Landlock can grant opening them.
  constexpr std::uint64_t kPlain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  const int queues = check(plan, kStep, host::new_filesystem("mqueue", nullptr, 0, kPlain));
  check(plan, kStep, host::attach_mount(queues, AT_FDCWD, "/dev/mqueue"));
  ::close(queues);
}

// Read-only where the program's user owns `source`, as without root: what lies in the root's file system counts neither
// as writable space nor as sampled memory.
void cover_with(const InitPlan& plan, const char* source, const char* path, SetupStep step, int detail) {
  check(plan, step, errno_result(::mount(source, path, nullptr, MS_BIND, nullptr)), detail);
  if (plan.privilege == Privilege::root) return;
  constexpr unsigned long kReadOnly = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
  check(plan, step, errno_result(::mount(nullptr, path, nullptr, kReadOnly, nullptr)), detail);
}

// Shows nothing at `path`. A part of /proc that this kernel lacks needs no cover; what --hide names must be there.
void cover(const InitPlan& plan, const char* path, SetupStep step, int detail) {
  struct stat status{};
  if (::lstat(path, &status) != 0) {
    if (errno == ENOENT && step == SetupStep::mask_proc) return;
    give_up(plan, step, -errno, detail);
  }
  if (S_ISLNK(status.st_mode)) give_up(plan, step, -ELOOP, detail);
  cover_with(plan, S_ISDIR(status.st_mode) ? kEmptyFolder : kEmptyFile, path, step, detail);
}

// What can't be found here can't be found by the program either, which has no more rights than init.
void cover_socket(const InitPlan& plan, const char* path) {
  struct stat status{};
  if (::lstat(path, &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  cover_with(plan, kEmptyFile, path, SetupStep::mount, 0);
}

// Shows empty what kMasked... name.
void mask_proc(const InitPlan& plan) {
  make_file(plan, kEmptyFile, nullptr, SetupStep::mask_proc);
  check(plan, SetupStep::mask_proc, errno_result(::mkdir(kEmptyFolder, 0555)));
  char path[64] = "/proc/";
  for (const char* name : kMaskedProcFiles) {
    std::strcpy(path + 6, name);
    cover(plan, path, SetupStep::mask_proc, 0);
  }
  for (const char* name : kMaskedProcFolders) {
    std::strcpy(path + 6, name);
    cover(plan, path, SetupStep::mask_proc, 0);
  }
}

// Settings of the sandbox's own network and IPC namespaces belong to uid 0 inside, which a program of an image may be:
// capabilities don't matter for them.
void lock_settings(const InitPlan& plan) {
  if (plan.ids.uid != 0) return;
  constexpr SetupStep kStep = SetupStep::mask_proc;
  const int settings = check(plan, kStep, host::clone_mount(AT_FDCWD, "/proc/sys", host::Recursion::no));
  constexpr std::uint64_t kLocked = kQuiet | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
  check(plan, kStep, host::set_mount_attributes(settings, kLocked, -1, host::Recursion::no));
  check(plan, kStep, host::attach_mount(settings, AT_FDCWD, "/proc/sys"));
  ::close(settings);
}

// Shows empty what --hide and sockets name, and our own text in place of what cover_files name. The last to need
// kEmpty...
void cover_planned(const InitPlan& plan) {
  for (const InitFile& file : plan.cover_files) {
    constexpr const char* kTemporary = "/.proc";
    make_file(plan, kTemporary, &file.content, SetupStep::mask_proc);
    cover_with(plan, kTemporary, file.path, SetupStep::mask_proc, 0);
    check(plan, SetupStep::mask_proc, errno_result(::unlink(kTemporary)));
  }
  int index = 0;
  for (const char* hidden : plan.hidden_paths) cover(plan, hidden, SetupStep::hide_path, index++);
  for (const char* socket : plan.sockets) cover_socket(plan, socket);
  check(plan, SetupStep::mask_proc, errno_result(::unlink(kEmptyFile)));
  check(plan, SetupStep::mask_proc, errno_result(::rmdir(kEmptyFolder)));
}

void copy_script(const InitPlan& plan, int script) {
  constexpr SetupStep kStep = SetupStep::copy_script;
  const int copy =
      check(plan, kStep, errno_result(::open(plan.script_target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555)));
  off_t offset = 0;
  while (true) {
    const ssize_t count = ::sendfile(copy, script, &offset, std::size_t{1} << 20);
    if (count < 0) give_up(plan, kStep, -errno);
    if (count == 0) break;
  }
  ::close(copy);
  ::close(script);
}

// An empty root with a masked /proc, which needs nothing of the plan.
void change_root(const InitPlan& plan) {
  // Before the host's /proc is gone: a new one is granted only where a full one is visible (user_namespaces(7)).
  const int proc =
      check(plan, SetupStep::new_proc, host::new_filesystem("proc", nullptr, 0, kQuiet | MOUNT_ATTR_NOEXEC));
  const host::FilesystemOption options[] = {{"mode", "0755"}, {"size", "128m"}, {"nr_inodes", "4096"}};
  const int root = check(plan, SetupStep::new_root, host::new_filesystem("tmpfs", options, 3, kQuiet));
  check(plan, SetupStep::new_root, host::attach_mount(root, AT_FDCWD, "/usr"));
  check(plan, SetupStep::new_root, errno_result(::fchdir(root)));
  check(plan, SetupStep::pivot, host::pivot_to_working_folder());
  check(plan, SetupStep::pivot, errno_result(::chdir("/")));
  ::close(root);
  check(plan, SetupStep::root_entries, errno_result(::mkdir("/proc", 0755)));
  check(plan, SetupStep::new_proc, host::attach_mount(proc, AT_FDCWD, "/proc"));
  ::close(proc);
  mask_proc(plan);
}

enum class LinkPlace { root, writable_space };

// A link below /tmp, to a virtual environment there say, can only be made once the writable space is mounted.
void make_links(const InitPlan& plan, LinkPlace place) {
  for (const InitLink& link : plan.root_links) {
    const bool is_below_tmp = std::strncmp(link.name, "/tmp/", 5) == 0;
    if (is_below_tmp != (place == LinkPlace::writable_space)) continue;
    make_parents(plan, link.name, SetupStep::root_entries, 0);
    check(plan, SetupStep::root_entries, errno_result(::symlink(link.target, link.name)));
  }
}

void make_root_entries(const InitPlan& plan) {
  for (const char* folder : plan.folders) {
    check(plan, SetupStep::root_entries, errno_result(::mkdir(folder, 0755)));
  }
  make_links(plan, LinkPlace::root);
  for (const InitFile& file : plan.files) {
    make_file(plan, file.path, &file.content, SetupStep::root_entries);
  }
}

}  // namespace

void hand_over_space(const InitPlan& plan, int space, WorkspaceForm form) {
  const std::span<const std::byte> message = std::as_bytes(std::span(&form, 1));
  check(plan, SetupStep::hand_over,
        static_cast<int>(host::send_with_descriptors(plan.space_link, message, {&space, 1})));
  ::close(plan.space_link);
}

void build_root(const InitPlan& plan, Received* received) {
  ClonedMounts cloned{};
  if (plan.privilege == Privilege::user) {
    receive_message(plan, ParentMessage::go, received);
    clone_own_mounts(plan, &cloned);
    change_root(plan);
  } else {
    change_root(plan);
    receive_message(plan, ParentMessage::go, received);
  }
  make_root_entries(plan);
  const int* mount_fds = plan.privilege == Privilege::root ? received->fds : cloned.fds;
  attach_mounts(plan, mount_fds, MountOwner::image);
  fill_dev(plan, cloned);
  mount_writable_space(plan, mount_fds);
  make_links(plan, LinkPlace::writable_space);
  attach_mounts(plan, mount_fds, MountOwner::caller);
  lock_settings(plan);
  cover_planned(plan);
  for (const int script : received->script(plan)) copy_script(plan, script);
}

void lock_root(const InitPlan& plan) {
  const int root = check(plan, SetupStep::lock_root, errno_result(::open("/", O_PATH | O_CLOEXEC | O_DIRECTORY)));
  check(plan, SetupStep::lock_root, host::set_mount_attributes(root, MOUNT_ATTR_RDONLY, -1, host::Recursion::no));
  ::close(root);
}

}  // namespace belljar::container
