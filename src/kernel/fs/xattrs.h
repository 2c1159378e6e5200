// Extended attributes of one inode (xattr(7)), kept in memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel/base/result.h"

namespace belljar::kernel {

class Xattrs {
 public:
  Xattrs() = default;
  Xattrs(const Xattrs&) = delete;
  Xattrs& operator=(const Xattrs&) = delete;
  ~Xattrs();

  // As getxattr(2), setxattr(2), listxattr(2) and removexattr(2) have them; the caller checks names and holds the lock.
  SysResult<std::size_t> get(std::string_view name, char* to, std::size_t size) const;
  SysResult<void> set(std::string_view name, std::string_view value, int flags);
  SysResult<std::size_t> list(char* to, std::size_t size) const;
  SysResult<void> remove(std::string_view name);

 private:
  // Followed by the name and the value.
  struct Entry {
    Entry* next;
    std::uint32_t name_size;
    std::uint32_t value_size;

    char* text() { return reinterpret_cast<char*>(this + 1); }
    std::string_view name() { return {text(), name_size}; }
    std::string_view value() { return {text() + name_size, value_size}; }
    std::size_t memory_size() const { return sizeof(Entry) + name_size + value_size; }
  };
  Entry** find(std::string_view name);

  Entry* first_ = nullptr;
  std::size_t total_ = 0;
};

}  // namespace belljar::kernel
