// Terminals in the tree: /dev/pts with /dev/pts/ptmx, and /dev/tty.
#pragma once

#include "kernel/fs/inode.h"

namespace belljar::kernel {

inline constexpr std::uint32_t kTerminalDevice = 24;  // st_dev of /dev/pts
inline constexpr std::uint32_t kTerminalMajor = 136;
inline constexpr std::uint64_t kMultiplexerInode = 2;
inline constexpr std::uint64_t kTerminalInodesFrom = 3;

// What is mounted on /dev/pts; null when the heap is full.
Ref<Inode> make_terminal_folder();

// tty(4): the caller's controlling terminal; ENXIO where it has none.
SysResult<Ref<File>> open_controlling_terminal(std::uint32_t flags, Ref<Inode> inode, Ref<Dentry> dentry);

}  // namespace belljar::kernel
