#include "kernel/ipc/socket_address.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace belljar::kernel {

SysResult<SocketAddress> SocketAddress::read(UserAddress from, std::uint32_t size) {
  if (size > sizeof(sockaddr_storage)) return error(EINVAL);
  SocketAddress address;
  char bytes[sizeof(sockaddr_storage)] = {};
  TRY_VOID(copy_in(bytes, from, size));
  std::memcpy(&address.address_, bytes, std::min<std::size_t>(size, sizeof address.address_));
  address.size_ = size;
  return address;
}

SysResult<std::string_view> SocketAddress::text() {
  if (size_ <= offsetof(sockaddr_un, sun_path) || size_ > sizeof address_) return error(EINVAL);
  if (address_.sun_family != AF_UNIX) return error(EINVAL);
  const std::size_t size = size_ - offsetof(sockaddr_un, sun_path);
  if (address_.sun_path[0] == '\0') return std::string_view(address_.sun_path, size);
  const std::size_t length = strnlen(address_.sun_path, size);
  // With the NUL, which may be `end_`.
  return std::string_view(address_.sun_path, length + 1);
}

SysResult<std::uint32_t> put_address(const Ref<UnixName>& name, UserAddress to, std::uint32_t room) {
  char bytes[sizeof(sa_family_t) + UnixName::kSizeMax] = {};
  const sa_family_t family = AF_UNIX;
  std::memcpy(bytes, &family, sizeof family);
  std::uint32_t size = sizeof family;
  if (name) {
    std::memcpy(bytes + size, name->text().data(), name->text().size());
    size += static_cast<std::uint32_t>(name->text().size());
  }
  TRY_VOID(copy_out(to, bytes, std::min(size, room)));
  return size;
}

SysResult<void> tell_address(const Ref<UnixName>& name, UserAddress to, UserAddress size) {
  if (to == 0) return {};
  const auto room = TRY(copy_in<int>(size));
  if (room < 0) return error(EINVAL);
  const auto whole = TRY(put_address(name, to, static_cast<std::uint32_t>(room)));
  return copy_out(size, whole);
}

}  // namespace belljar::kernel
