// What a policy file must not hold because the TOML library would not survive it: a look at the text before it is
// parsed. Everything else that is no TOML is left for the library to refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace belljar {

struct TomlFault {
  std::uint32_t line;     // counted from 1
  std::string_view what;  // a static text: what is wrong, and what would be right
};

// The first fault in `text`, which may be any bytes. Time is linear, and nothing recurses.
std::optional<TomlFault> find_toml_fault(std::string_view text);

}  // namespace belljar
