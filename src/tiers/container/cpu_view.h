// What the sandbox sees of the processors: as many as its quota, rounded up, and the same number everywhere it looks.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tiers/container/lease.h"
#include "tiers/container/plan.h"

namespace belljar::container {

struct CpuChoice {
  cpu_set_t cpus{};
  std::optional<LeaseFile> pins;  // holds the choice while the sandbox runs; other sandboxes choose around it
};

struct CpuView {
  std::vector<PlannedFile> proc_files;   // /proc/cpuinfo, /proc/stat
  std::vector<std::string> sys_folders;  // /sys/devices/system/cpu/...
  std::vector<PlannedFile> sys_files;
};

// Chooses ceil(millicpus / 1000) of the processors that this process may use, those with the fewest sandboxes pinned to
// them; the calling thread's comes last, so that the sandbox starts beside it. Fails when there are fewer.
Result<CpuChoice> choose_cpus(std::uint64_t millicpus);

// What shows the sandbox these processors and no others.
CpuView view_cpus(const cpu_set_t& cpus);

// "0,2-3": the list format of cpuset(7).
std::string format_cpu_list(const cpu_set_t& cpus);

// The blocks of /proc/cpuinfo (proc(5)) that describe `cpus`.
std::string filter_cpuinfo(std::string_view cpuinfo, const cpu_set_t& cpus);

}  // namespace belljar::container
