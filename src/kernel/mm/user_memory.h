// The only way to guest memory. Each value is fetched once; an address that is not mapped, or lies in the kernel's own
// range, is EFAULT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/base/result.h"

namespace belljar::kernel {

using UserAddress = std::uint64_t;

SysResult<void> copy_in(void* to, UserAddress from, std::size_t size);
SysResult<void> copy_out(UserAddress to, const void* from, std::size_t size);
SysResult<void> zero_out(UserAddress to, std::size_t size);

// A string with its NUL; returns its length without it. ENAMETOOLONG where none of the `size` bytes is NUL.
SysResult<std::size_t> copy_in_string(char* to, UserAddress from, std::size_t size);

template <typename T>
SysResult<T> copy_in(UserAddress from) {
  T value;
  TRY_VOID(copy_in(&value, from, sizeof value));
  return value;
}

template <typename T>
SysResult<void> copy_out(UserAddress to, const T& value) {
  return copy_out(to, &value, sizeof value);
}

// One area of an I/O vector (readv(2)).
struct Area {
  std::uint64_t base;
  std::uint64_t size;
};

// Where a read puts its bytes, or a write takes them from: areas of guest memory, or one of the kernel's own.
class Buffers {
 public:
  static Buffers of_guest(std::span<const Area> areas) { return Buffers(areas, Kind::guest); }
  static Buffers of_kernel(const Area& area) { return Buffers({&area, 1}, Kind::kernel); }

  std::uint64_t left() const { return left_; }
  // Moves on by `size`, which must not be more than left(). EFAULT where guest memory faults: then nothing is moved.
  SysResult<void> put(const void* from, std::size_t size);
  SysResult<void> put_zeros(std::size_t size);
  SysResult<void> take(void* to, std::size_t size);
  // Nothing after the next `size` bytes is used.
  void cut(std::uint64_t size) {
    if (size < left_) left_ = size;
  }

 private:
  enum class Kind : std::uint8_t { guest, kernel };
  Buffers(std::span<const Area> areas, Kind kind);

  template <typename Move>
  SysResult<void> for_each_part(std::size_t size, Move move);

  std::span<const Area> areas_;  // the caller's; must live as long
  std::uint64_t done_ = 0;       // of the first area
  std::uint64_t left_ = 0;
  Kind kind_;
};

// Reads the vector of readv(2) and the like: EINVAL for more than IOV_MAX areas or too many bytes in all.
inline constexpr std::size_t kAreasMax = 1024;
inline constexpr std::uint64_t kTransferMax = 0x7fff'f000;  // read(2): no call transfers more
class AreaList {
 public:
  static SysResult<AreaList> read(UserAddress vector, std::uint64_t count);
  AreaList() = default;
  AreaList(AreaList&& other) noexcept;
  AreaList& operator=(AreaList&&) = delete;
  ~AreaList();
  Buffers buffers() const { return Buffers::of_guest({areas_, count_}); }

 private:
  static constexpr std::size_t kFew = 8;
  Area few_[kFew];
  Area* areas_ = few_;
  std::size_t count_ = 0;
};

}  // namespace belljar::kernel
