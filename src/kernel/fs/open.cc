#include "kernel/fs/open.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

#include "kernel/base/text.h"
#include "kernel/fs/dentry_cache.h"
#include "kernel/fs/inode_file.h"
#include "kernel/fs/watches.h"
#include "kernel/task/process.h"

namespace belljar::kernel {
namespace {

// What F_GETFL does not tell of how a file was opened.
constexpr std::uint32_t kOnceFlags = O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC;
constexpr std::uint32_t kTmpFile = 020000000;  // O_TMPFILE without O_DIRECTORY

std::uint32_t wanted_access(std::uint32_t flags) {
  constexpr std::uint32_t kWanted[] = {R_OK, W_OK, R_OK | W_OK, R_OK | W_OK};
  return kWanted[flags & O_ACCMODE] | ((flags & O_TRUNC) != 0 ? std::uint32_t{W_OK} : 0U);
}

SysResult<Ref<File>> open_place(Ref<Dentry> dentry, std::uint32_t flags) {
  auto file = make_ref<PlaceFile>(dentry->inode, dentry);
  if (!file) return error(ENOMEM);
  file->set_flags(flags & (O_PATH | O_DIRECTORY | O_NOFOLLOW));
  return Ref<File>(std::move(file));
}

SysResult<void> check_open(const Inode& inode, std::uint32_t flags, const Credentials& who) {
  if (inode.is_link()) return error(ELOOP);
  if ((flags & O_DIRECTORY) != 0 && !inode.is_folder()) return error(ENOTDIR);
  const std::uint32_t wanted = wanted_access(flags);
  if (inode.is_folder() && ((wanted & W_OK) != 0 || (flags & O_CREAT) != 0)) return error(EISDIR);
  TRY_VOID(check_access(inode, wanted, who));
  if ((flags & O_NOATIME) != 0 && !owns(inode, who)) return error(EPERM);
  return {};
}

// A process runs it.
bool is_running(const Inode& inode) {
  LockGuard guard(tasks_lock());
  for (const Process* process = next_process(0); process != nullptr; process = next_process(process->pid)) {
    const Dentry* const executable = process->executable.get();
    if (process->state != ProcessState::zombie && executable != nullptr && executable->inode.get() == &inode)
      return true;
  }
  return false;
}

enum class Made : bool { no, yes };

// Opens an inode that was checked, or just made.
SysResult<Ref<File>> open_checked(Ref<Dentry> dentry, std::uint32_t flags, Made made) {
  Inode& inode = *dentry->inode;
  if ((flags & O_TRUNC) != 0 && made == Made::no && inode.is_regular()) {
    AttributeChange change;
    change.set_size = true;
    TRY_VOID(inode.change(change));
    if (has_any_watch()) {
      LockGuard guard(tree_lock());
      tell_watches_of_dentry(*dentry, IN_MODIFY);
    }
  }
  Ref<File> file = TRY(inode.open(std::move(dentry), flags));
  file->set_flags((flags & ~kOnceFlags) | kLargeFileFlag);
  tell_watches_of_file(*file, IN_OPEN);
  return file;
}

SysResult<Ref<File>> open_nameless(const Ref<Dentry>& folder, const OpenHow& how, const Credentials& who) {
  if (!folder->inode->is_folder()) return error(ENOTDIR);
  Ref<Dentry> dentry = make_ref<Dentry>();
  if (!dentry) return error(ENOMEM);
  {
    LockGuard guard(tree_lock());
    TRY_VOID(check_access(*folder->inode, W_OK | X_OK, who));
    dentry->inode = TRY(folder->inode->make_nameless(S_IFREG | (how.mode & 07777), who));
    if ((how.flags & O_EXCL) == 0) dentry->inode->let_link();
    char name[24];
    TextWriter text(name, sizeof name);
    text << '#';
    text.number(dentry->inode->number);
    TRY_VOID(dentry->set_name(text.text()));
    dentry->parent = folder;
    dentry->is_unlinked = true;
  }
  return open_checked(std::move(dentry), how.flags, Made::yes);
}

struct Found {
  Ref<Dentry> dentry;
  Made made = Made::no;
};

// Of open(2) with O_CREAT: the file of that name, or a new one.
SysResult<Found> find_or_make(const Places& places, const Ref<Dentry>& start, std::string_view path, const OpenHow& how,
                              const Credentials& who) {
  const bool is_exclusive = (how.flags & O_EXCL) != 0;
  Walk walk_how;
  walk_how.resolve = how.resolve;
  walk_how.follow_last = is_exclusive || (how.flags & O_NOFOLLOW) != 0 ? FollowLast::no : FollowLast::yes;
  LockGuard guard(tree_lock());
  const LastName last = TRY(walk_to_last(places, start, path, who, walk_how));
  if (last.kind != LastName::Kind::name) return error(is_exclusive ? EEXIST : EISDIR);
  if (last.has_slash) return error(EISDIR);
  if (!last.dentry->inode) {
    TRY(make_file_at(last, S_IFREG | (how.mode & 07777), 0, who));
    return Found{last.dentry, Made::yes};
  }
  if (is_exclusive) return error(EEXIST);
  Ref<Dentry> dentry = last.dentry;
  while (dentry->mounted != nullptr) dentry = Ref<Dentry>::of(dentry->mounted);
  // Others' files in a sticky folder that all may write to are not opened by who meant to make them
  // (fs.protected_regular and fs.protected_fifos of proc(5)).
  const Inode& inode = *dentry->inode;
  const Inode* const folder = last.folder ? last.folder->inode.get() : nullptr;
  if (folder != nullptr && (inode.is_regular() || S_ISFIFO(inode.mode)) && (folder->mode & S_ISVTX) != 0 &&
      (folder->mode & 022) != 0 && !owns(inode, who) && inode.uid != folder->uid) {
    return error(EACCES);
  }
  return Found{std::move(dentry), Made::no};
}

}  // namespace

SysResult<Ref<Inode>> make_file_at(const LastName& place, std::uint32_t mode, std::uint64_t rdev,
                                   const Credentials& who) {
  if (place.dentry->inode) return error(EEXIST);
  Inode& folder = *place.folder->inode;
  if (place.folder->is_unlinked) return error(ENOENT);
  TRY_VOID(check_access(folder, W_OK | X_OK, who));
  Ref<Inode> made = TRY(folder.create(place.dentry->name(), mode, rdev, who));
  set_inode(*place.dentry, made);
  tell_watches(folder, S_ISDIR(mode) ? IN_CREATE | IN_ISDIR : IN_CREATE, 0, place.dentry->name());
  return made;
}

SysResult<Ref<File>> open_dentry(Ref<Dentry> dentry, const OpenHow& how, const Credentials& who) {
  if ((how.flags & O_PATH) != 0) {
    if ((how.flags & O_DIRECTORY) != 0 && !dentry->inode->is_folder()) return error(ENOTDIR);
    return open_place(std::move(dentry), how.flags);
  }
  if ((how.flags & kTmpFile) != 0) return open_nameless(dentry, how, who);
  TRY_VOID(check_open(*dentry->inode, how.flags, who));
  const bool may_run = dentry->inode->is_regular() && (dentry->inode->mode & 0111) != 0;
  if ((how.flags & O_ACCMODE) != O_RDONLY && may_run && is_running(*dentry->inode)) return error(ETXTBSY);
  return open_checked(std::move(dentry), how.flags, Made::no);
}

SysResult<Ref<File>> open_path(const Places& places, const Ref<Dentry>& start, std::string_view path,
                               const OpenHow& how, const Credentials& who) {
  if ((how.flags & O_CREAT) != 0 && (how.flags & O_PATH) == 0) {
    Found found = TRY(find_or_make(places, start, path, how, who));
    if (found.made == Made::yes) return open_checked(std::move(found.dentry), how.flags, Made::yes);
    return open_dentry(std::move(found.dentry), how, who);
  }
  Walk walk_how;
  walk_how.resolve = how.resolve;
  walk_how.follow_last = (how.flags & O_NOFOLLOW) != 0 ? FollowLast::no : FollowLast::yes;
  Ref<Dentry> dentry;
  {
    LockGuard guard(tree_lock());
    dentry = TRY(walk(places, start, path, who, walk_how));
  }
  return open_dentry(std::move(dentry), how, who);
}

}  // namespace belljar::kernel
