#include "base/mapping.h"

#include <sys/mman.h>

#include <cerrno>

namespace belljar {

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    reset();
    address_ = std::exchange(other.address_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

SysResult<Mapping> Mapping::create_shared(std::size_t bytes) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return std::unexpected(Errno{errno});
  return Mapping(address, bytes);
}

void Mapping::reset() {
  if (address_ != nullptr) ::munmap(std::exchange(address_, nullptr), size_);
}

}  // namespace belljar
