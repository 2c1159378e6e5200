#include <fmt/format.h>

#include "cgroup/cgroup.h"
#include "cli/execute.h"
#include "tiers/container/container.h"

namespace belljar {

int run_gc() {
  const std::uint64_t removed = sweep_cgroups(is_sandbox_owner_alive);
  fmt::print("removed what {} killed run{} left behind\n", removed, removed == 1 ? "" : "s");
  return 0;
}

}  // namespace belljar
