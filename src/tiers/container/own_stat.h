// What /proc/self/stat (proc(5)) says of this process.
#pragma once

#include <string>

#include "base/result.h"
#include "tiers/container/plan.h"

namespace belljar::container {

struct OwnStat {
  std::string start_time;  // field 22, clock ticks since boot: with the pid it names a process for good
  MemoryArea arguments;    // fields 48 and 49
  MemoryArea environment;  // fields 50 and 51
};

Result<OwnStat> read_own_stat();

}  // namespace belljar::container
