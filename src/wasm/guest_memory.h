// The memory of a module, for as long as one call of it lasts: no address of it is used before it was checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace belljar::wasm {

class GuestMemory {
 public:
  GuestMemory() = default;
  explicit GuestMemory(std::span<std::byte> all) : all_(all) {}

  // Nothing where any of it lies outside.
  std::optional<std::span<std::byte>> bytes(std::uint32_t address, std::uint64_t size) const {
    if (address > all_.size() || size > all_.size() - address) return std::nullopt;
    return all_.subspan(address, size);
  }

  std::optional<std::string_view> text(std::uint32_t address, std::uint32_t size) const {
    const auto found = bytes(address, size);
    if (!found) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(found->data()), found->size());
  }

  template <typename T>
  std::optional<T> load(std::uint32_t address) const {
    const auto found = bytes(address, sizeof(T));
    if (!found) return std::nullopt;
    T value;
    std::memcpy(&value, found->data(), sizeof value);
    return value;
  }

  // False where it lies outside.
  template <typename T>
  [[nodiscard]] bool store(std::uint32_t address, const T& value) const {
    const auto found = bytes(address, sizeof(T));
    if (found) std::memcpy(found->data(), &value, sizeof value);
    return found.has_value();
  }

 private:
  std::span<std::byte> all_;
};

}  // namespace belljar::wasm
