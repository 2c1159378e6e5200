// Which name each synthetic address stands for. An address is given when a listed name is first asked for, and stays.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "spec/host_name.h"

namespace belljar::egress {

inline constexpr std::size_t kSyntheticNamesMax = 4096;

class SyntheticNames {
 public:
  // The address of the name, in one of the two families; nothing once kSyntheticNamesMax names have one.
  std::optional<IpAddress> address_of(const std::string& name, IpFamily family);

  // Whether the address is of the range that stands for names, and the name, where it has one.
  static bool is_synthetic(const IpAddress& address);
  std::optional<std::string> name_of(const IpAddress& address) const;

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<std::string> names_;
};

}  // namespace belljar::egress
