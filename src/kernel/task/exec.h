// execve(2).
#pragma once

#include <cstdint>

#include "kernel/base/result.h"
#include "kernel/fs/file.h"
#include "kernel/fs/inode.h"
#include "kernel/mm/user_memory.h"

namespace belljar::kernel {

// What a new program gets, copied out of the old one's memory: NUL-terminated strings, one after the other.
class ExecStrings {
 public:
  ExecStrings() = default;
  ExecStrings(const ExecStrings&) = delete;
  ExecStrings& operator=(const ExecStrings&) = delete;
  ~ExecStrings();

  SysResult<void> add(std::string_view text);
  SysResult<void> add_from(UserAddress vector);  // all of a null-terminated array of pointers
  // Takes the first `count` away and puts others in front, in order.
  SysResult<void> replace_front(std::size_t count, const std::string_view* texts, std::size_t text_count);
  std::size_t count() const { return count_; }
  std::string_view bytes() const { return {text_, size_}; }

 private:
  SysResult<void> reserve(std::size_t size);

  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::size_t count_ = 0;
};

// All of them together; beyond, E2BIG.
inline constexpr std::size_t kExecStringsMost = 6U << 20;

// Replaces the running process's program. Returns only where it fails, or with the frame of the new program in place.
SysResult<void> execute(std::string_view path, const Ref<Dentry>& start, ExecStrings& arguments,
                        ExecStrings& environment);

}  // namespace belljar::kernel
