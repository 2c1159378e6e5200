// What files without a name have in common: pipes, sockets, and the files of "anon_inode:".
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernel/base/result.h"
#include "kernel/fs/fd_table.h"
#include "kernel/fs/file.h"

namespace belljar::kernel {

// Device numbers as fstat(2) shows them.
inline constexpr std::uint32_t kSocketDevice = 8;
inline constexpr std::uint32_t kPipeDevice = 14;
inline constexpr std::uint32_t kAnonymousDevice = 15;

// What fstat(2) tells of such a file; `owner_*` is who made it.
struct NamelessFacts {
  std::uint64_t number = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  // Of a new file, made by the running task.
  static NamelessFacts make();
};

void fill_nameless_stat(struct stat* status, const NamelessFacts& facts, std::uint32_t mode, std::uint32_t device);

// "pipe:[7]", "socket:[7]"; returns the length.
std::size_t describe_numbered(char* text, std::size_t size, std::string_view kind, std::uint64_t number);
std::size_t describe_text(char* text, std::size_t size, std::string_view description);

// A file of "anon_inode:": eventfd, epoll and so on.
class AnonymousFile : public File {
 public:
  explicit AnonymousFile(std::string_view name) : name_(name) {}
  SysResult<void> stat(struct stat* status) override;
  std::size_t describe(char* text, std::size_t size) const override;

 private:
  std::string_view name_;  // "[eventfd]"; a constant of the kernel's image
};

// Puts a new file into the caller's table; `flags` are the call's own: O_CLOEXEC, O_NONBLOCK. Null: ENOMEM.
SysResult<int> add_new_file(Ref<File> file, std::uint32_t access, std::uint32_t flags);

}  // namespace belljar::kernel
