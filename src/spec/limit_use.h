// How much of each limit a run used, and which limit struck: what is remembered of runs and what limits are calibrated
// from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/outcome.h"

namespace belljar {

struct LimitUse {
  const LimitRow* row;
  std::uint64_t cap;                  // the limit that was in force, in the row's unit
  std::optional<std::uint64_t> used;  // in the row's unit; nothing where it is not measured
  bool struck = false;                // the limit ended, refused, slowed or cut something
  bool is_censored = false;           // struck, and without the limit the run would have used more than `used`
};

// One for each row of limits.def, in its order.
std::vector<LimitUse> limit_uses(const Outcome& outcome);

// A sentence for each limit that did not strike, but was within 10 % of it.
std::vector<std::string> near_limits(const Outcome& outcome);

// Whether runs of this status were ended, or made to fail, by one of their limits.
bool is_limit_status(RunStatus status);

// Whether the program started, and was not stopped by its caller: only then does its use tell what it needs.
bool tells_of_use(RunStatus status);

}  // namespace belljar
