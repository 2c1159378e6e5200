// Opening by path (open(2), openat2(2)).
#pragma once

#include "kernel/fs/tree.h"

namespace belljar::kernel {

struct OpenHow {
  std::uint32_t flags = 0;  // O_*
  std::uint32_t mode = 0;   // of a new file; the umask is taken off already
  std::uint64_t resolve = 0;
};

// No lock may be held. May wait (FIFOs).
SysResult<Ref<File>> open_path(const Places& places, const Ref<Dentry>& start, std::string_view path,
                               const OpenHow& how, const Credentials& who);

// Opens what a walk found, with all checks but those of names. No lock may be held.
SysResult<Ref<File>> open_dentry(Ref<Dentry> dentry, const OpenHow& how, const Credentials& who);

// A file of the type and mode `mode` under a free name: checks the folder, tells inotify(7). EEXIST where the name is
// taken. The tree lock is held. For creat(2), mkdir(2), mknod(2), and bind(2) of sockets.
SysResult<Ref<Inode>> make_file_at(const LastName& place, std::uint32_t mode, std::uint64_t rdev,
                                   const Credentials& who);

}  // namespace belljar::kernel
