// What /proc/PID/stat (proc(5)) says of this process, and of others.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "tiers/container/plan.h"

namespace belljar::container {

struct OwnStat {
  std::string start_time;  // field 22, clock ticks since boot: with the pid it names a process for good
  MemoryArea arguments;    // fields 48 and 49
  MemoryArea environment;  // fields 50 and 51
};

Result<OwnStat> read_own_stat();

// Whether the process that was named by its pid and start time still runs. A zombie does not.
bool is_alive(pid_t pid, std::string_view start_time);

}  // namespace belljar::container
