// Mapping: the owner of a region of memory from mmap(2).
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"

namespace belljar {

// Unmaps its region when destroyed. Move-only. A default-made Mapping owns nothing.
class [[nodiscard]] Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { reset(); }

  // Zeroed memory that a process made by fork(2) or clone(2) shares with this one.
  static SysResult<Mapping> create_shared(std::size_t bytes);

  void* address() const { return address_; }

 private:
  Mapping(void* address, std::size_t size) : address_(address), size_(size) {}
  void reset();

  void* address_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace belljar
