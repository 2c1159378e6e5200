// Any text as the tables of /proc in which users of the host have a say: mountinfo and cgroup, whose paths they name.
// The paths that come out are absolute, and the group lies below its mount.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "cgroup/layout.h"

namespace {

void check_group(const std::string& path) {
  if (!path.empty() && path[0] != '/') std::abort();
}

void check_layout(std::string_view mountinfo, std::string_view own_groups) {
  const belljar::CgroupLayout layout = belljar::find_layout(mountinfo, own_groups);
  std::ranges::for_each(layout.v1_groups, check_group);
  check_group(layout.v2_group);
  check_group(layout.v2_mount);
  if (!layout.v2_group.starts_with(layout.v2_mount)) std::abort();
}

}  // namespace

// The second text begins after the first NUL byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view first = text.substr(0, text.find('\0'));
  const std::string_view second = text.substr(std::min(first.size() + 1, text.size()));
  check_layout(first, second);
  return 0;
}
