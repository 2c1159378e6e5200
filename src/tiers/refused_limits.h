// Limits that a tier does not hold: limits.def says so of them in the tier's column, with the reason.
#pragma once

#include <string_view>

#include "base/result.h"
#include "spec/limits.h"

namespace belljar {

bool is_refused_limit(std::string_view tier, std::string_view limit);

// Errors: cannot_enforce, for the first limit that was named and is refused.
Result<void> check_refused_limits(std::string_view tier, const Limits& limits);

}  // namespace belljar
