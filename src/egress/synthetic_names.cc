#include "egress/synthetic_names.h"

#include <algorithm>

#include "host/redirect.h"

namespace belljar::egress {
namespace {

bool begins_with(const IpAddress& address, std::span<const std::uint8_t> prefix) {
  return std::equal(prefix.begin(), prefix.end(), address.bytes.begin());
}

std::size_t address_bytes(IpFamily family) {
  return family == IpFamily::v4 ? 4 : 16;
}

std::span<const std::uint8_t> prefix_of(IpFamily family) {
  return family == IpFamily::v4 ? std::span<const std::uint8_t>(host::kNamesV4)
                                : std::span<const std::uint8_t>(host::kNamesV6);
}

}  // namespace

// The number stands in the last two bytes, from 1 on, so that no address ends in two zeros as a network's does.
std::optional<IpAddress> SyntheticNames::address_of(const std::string& name, IpFamily family) {
  auto found = numbers_.find(name);
  if (found == numbers_.end()) {
    if (names_.size() == kSyntheticNamesMax) return std::nullopt;
    names_.push_back(name);
    found = numbers_.emplace(name, names_.size()).first;
  }
  IpAddress address{.family = family};
  const auto prefix = prefix_of(family);
  std::ranges::copy(prefix, address.bytes.begin());
  const std::size_t end = address_bytes(family);
  address.bytes[end - 2] = static_cast<std::uint8_t>(found->second >> 8);
  address.bytes[end - 1] = static_cast<std::uint8_t>(found->second);
  return address;
}

bool SyntheticNames::is_synthetic(const IpAddress& address) {
  return begins_with(address, prefix_of(address.family));
}

std::optional<std::string> SyntheticNames::name_of(const IpAddress& address) const {
  if (!is_synthetic(address)) return std::nullopt;
  const std::size_t end = address_bytes(address.family);
  const std::size_t prefix = prefix_of(address.family).size();
  if (std::any_of(address.bytes.begin() + static_cast<std::ptrdiff_t>(prefix),
                  address.bytes.begin() + static_cast<std::ptrdiff_t>(end) - 2, [](auto byte) { return byte != 0; })) {
    return std::nullopt;
  }
  const std::size_t number = static_cast<std::size_t>(address.bytes[end - 2]) << 8 | address.bytes[end - 1];
  if (number == 0 || number > names_.size()) return std::nullopt;
  return names_[number - 1];
}

}  // namespace belljar::egress
