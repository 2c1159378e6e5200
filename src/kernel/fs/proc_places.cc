// /proc/PID: where in the tree a process is, and which files it has open.
#include <fcntl.h>
#include <linux/magic.h>

#include "kernel/fs/fd_table.h"
#include "kernel/fs/proc.h"
#include "kernel/fs/tree.h"

namespace belljar::kernel {
namespace {

// A file without a name, such as a pipe, as a link of /proc/self/fd leads to it: opening it opens the same thing anew.
class ReopenedInode final : public Inode {
 public:
  explicit ReopenedInode(Ref<File> file) : file_(std::move(file)) {}
  SysResult<Ref<File>> open(Ref<Dentry>, std::uint32_t flags) override { return file_->reopen(flags); }
  SysResult<void> fill_stat(struct stat* status) override { return file_->stat(status); }

 private:
  Ref<File> file_;
};

// What a thread has, as references of one's own. The running thread's may differ from its leader's.
struct Holdings {
  Ref<FdTable> files;
  Ref<FsPlaces> fs;
  Ref<Dentry> executable;
};

SysResult<Holdings> holdings_of(const Subject& subject) {
  Holdings held;
  TRY_VOID(tell_of_task(subject, [&](const Process& process, const Task& task) {
    const bool is_own = &process == &current_process() && subject.thread == 0;
    const Task& holder = is_own ? current() : task;
    held = {holder.files, holder.fs, process.executable};
  }));
  return held;
}

SysResult<Ref<File>> file_of(const Subject& subject) {
  const Holdings held = TRY(holdings_of(subject));
  if (!held.files) return error(ENOENT);
  auto file = held.files->get_any(subject.number);
  if (!file) return error(ENOENT);
  return file;
}

SysResult<void> write_path(Dentry& dentry, LongText& to) {
  char* const path = to.reserve(kPathMax);
  if (path == nullptr) return error(ENOMEM);
  const Ref<FsPlaces> fs = current().fs;
  const LockGuard guard(tree_lock());
  to.commit(TRY(path_of(dentry, *fs->places.root, path, kPathMax)));
  return {};
}

// Working folder and root can change while they are read: under the lock of FsPlaces.
SysResult<Ref<Dentry>> place_of(const Subject& subject, Ref<Dentry> Places::* which) {
  const Holdings held = TRY(holdings_of(subject));
  if (!held.fs) return error(ENOENT);
  const LockGuard guard(held.fs->lock);
  return held.fs->places.*which;
}

SysResult<void> write_place(const Subject& subject, Ref<Dentry> Places::* which, LongText& to) {
  const Ref<Dentry> place = TRY(place_of(subject, which));
  return write_path(*place, to);
}

constexpr std::uint64_t kFirstMount = 20;

struct MountInfo {
  std::string_view type, access;
};

MountInfo info_of(const Dentry& root) {
  const Inode::Space space = root.inode->space();
  const std::string_view access = space.is_read_only ? "ro" : "rw";
  switch (space.magic) {
    case PROC_SUPER_MAGIC:
      return {"proc", access};
    case SYSFS_MAGIC:
      return {"sysfs", access};
    case TMPFS_MAGIC:
      return {"tmpfs", access};
    case DEVPTS_SUPER_MAGIC:
      return {"devpts", access};
    default:
      return {"overlay", access};
  }
}

}  // namespace

SysResult<void> proc_self(const Subject&, LongText& to) {
  to.decimal(current_process().pid);
  return {};
}

SysResult<void> proc_thread_self(const Subject&, LongText& to) {
  to.decimal(current_process().pid) << "/task/";
  to.decimal(current().tid);
  return {};
}

SysResult<Ref<Dentry>> proc_exe_place(const Subject& subject) {
  Holdings held = TRY(holdings_of(subject));
  if (!held.executable) return error(ENOENT);
  return std::move(held.executable);
}

SysResult<void> proc_exe(const Subject& subject, LongText& to) {
  const Ref<Dentry> executable = TRY(proc_exe_place(subject));
  return write_path(*executable, to);
}

SysResult<Ref<Dentry>> proc_cwd_place(const Subject& subject) {
  return place_of(subject, &Places::working_folder);
}

SysResult<void> proc_cwd(const Subject& subject, LongText& to) {
  return write_place(subject, &Places::working_folder, to);
}

SysResult<Ref<Dentry>> proc_root_place(const Subject& subject) {
  return place_of(subject, &Places::root);
}

SysResult<void> proc_root(const Subject& subject, LongText& to) {
  return write_place(subject, &Places::root, to);
}

SysResult<void> proc_fd(const Subject& subject, LongText& to) {
  const Ref<File> file = TRY(file_of(subject));
  if (Dentry* const dentry = file->dentry()) return write_path(*dentry, to);
  constexpr std::size_t kDescriptionMax = 256;
  char* const into = to.reserve(kDescriptionMax);
  if (into == nullptr) return error(ENOMEM);
  to.commit(file->describe(into, kDescriptionMax));
  return {};
}

SysResult<Ref<Dentry>> proc_fd_place(const Subject& subject) {
  Ref<File> file = TRY(file_of(subject));
  if (Dentry* const dentry = file->dentry()) return Ref<Dentry>::of(dentry);
  struct stat status{};
  TRY_VOID(file->stat(&status));
  Ref<ReopenedInode> inode = make_ref<ReopenedInode>(std::move(file));
  if (!inode) return error(ENOMEM);
  inode->mode = status.st_mode;
  inode->uid = status.st_uid;
  inode->gid = status.st_gid;
  Ref<Dentry> dentry = make_root_dentry(std::move(inode));
  if (!dentry) return error(ENOMEM);
  return dentry;
}

SysResult<void> proc_fdinfo(const Subject& subject, LongText& to) {
  const Ref<File> file = TRY(file_of(subject));
  const Holdings held = TRY(holdings_of(subject));
  const auto closes = held.files ? held.files->closes_on_exec(subject.number) : SysResult<bool>(false);
  struct stat status{};
  TRY_VOID(file->stat(&status));
  (to << "pos:\t").number(file->current_position);
  (to << "\nflags:\t0").octal(file->flags() | (closes && *closes ? std::uint32_t{O_CLOEXEC} : 0));
  (to << "\nmnt_id:\t").number(status.st_dev);
  (to << "\nino:\t").number(status.st_ino) << '\n';
  return {};
}

bool enter_fd(Subject& subject, std::uint32_t number) {
  subject.number = static_cast<int>(number);
  return file_of(subject).has_value();
}

std::int64_t next_fd(const Subject& subject, std::uint32_t at) {
  const auto held = holdings_of(subject);
  return held && held->files ? held->files->next_used(static_cast<int>(at)) : -1;
}

SysResult<void> proc_mounts(const Subject&, LongText& to) {
  for (Dentry* const root : mounted_roots()) {
    const MountInfo mount = info_of(*root);
    to << mount.type << ' ';
    TRY_VOID(write_path(*root, to));
    to << ' ' << mount.type << ' ' << mount.access << ",relatime 0 0\n";
  }
  return {};
}

SysResult<void> proc_mountinfo(const Subject&, LongText& to) {
  std::uint64_t number = kFirstMount;
  for (Dentry* const root : mounted_roots()) {
    const MountInfo mount = info_of(*root);
    to.number(number) << ' ';
    to.number(number == kFirstMount ? 1 : kFirstMount) << " 0:";
    to.number(root->inode->device) << " / ";
    TRY_VOID(write_path(*root, to));
    to << ' ' << mount.access << ",relatime - " << mount.type << ' ' << mount.type << ' ' << mount.access << '\n';
    ++number;
  }
  return {};
}

}  // namespace belljar::kernel
