// File systems that are made up when they are looked at: /proc, /sys, /dev. Each is a table with a row for each file:
// its path, its mode, and what makes its contents. Folders follow from the paths.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/fs/inode.h"
#include "kernel/fs/long_text.h"

namespace belljar::kernel {

// What a path is about where parts of it stand for any number of a kind ("[pid]").
struct Subject {
  std::int32_t process = 0;
  std::int32_t thread = 0;
  std::int32_t number = -1;  // a descriptor, a CPU
};

struct GeneratedRow {
  std::string_view path;  // below the root of the file system; "a/b", "[pid]/stat"
  std::uint32_t mode;     // type and permissions. A row for a folder comes before those of what is in it
  // Contents of a file, or the target of a link.
  SysResult<void> (*text)(const Subject& subject, LongText& to) = nullptr;
  std::string_view constant = {};  // the same where it never changes
  // Of a link that leads to a place, whose name `text` tells.
  SysResult<Ref<Dentry>> (*place)(const Subject& subject) = nullptr;
  // What is written to it, as one piece. Without it writing is EPERM.
  SysResult<void> (*write)(const Subject& subject, std::string_view text) = nullptr;
  // Of devices.
  SysResult<Ref<File>> (*open)(Ref<Inode> inode, Ref<Dentry> dentry, std::uint32_t flags) = nullptr;
  std::uint64_t rdev = 0;
};

// A part of paths that stands for numbers.
struct NumberedPart {
  std::string_view part;  // "[pid]", "cpu[n]"
  // Sets what the subject is about; false: there is no such number.
  bool (*enter)(Subject& subject, std::uint32_t number);
  // The lowest number that there is from `at` on; -1: none.
  std::int64_t (*next)(const Subject& subject, std::uint32_t at);
};

struct Owner {
  std::uint32_t uid, gid;
};

// Constant, in the kernel's image.
struct GeneratedTree {
  std::span<const GeneratedRow> rows;
  std::uint64_t magic;   // statfs(2)
  std::uint32_t device;  // stat(2); below what fs/ gives out
  std::span<const NumberedPart> numbered = {};
  // Whose a file is; null: root's.
  Owner (*owner)(const Subject& subject) = nullptr;
};

// The root folder of a tree.
SysResult<Ref<Inode>> make_generated_file_system(const GeneratedTree& tree);

}  // namespace belljar::kernel
