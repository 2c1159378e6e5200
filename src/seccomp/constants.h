// The names that policies may use for numbers: AF_UNIX, CLONE_NEWUSER, EPERM ...
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace belljar {

// The value of a name of the kernel's headers, such as "TIOCSTI" or "S_ISUID" (rows of constants.cc).
std::optional<std::uint64_t> find_constant(std::string_view name);

// The errno of a name such as "EPERM" (errno(3)).
std::optional<std::uint16_t> find_errno(std::string_view name);

// "EPERM" for EPERM, and so on for what find_errno gives.
std::string_view errno_name(std::uint16_t value);

}  // namespace belljar
