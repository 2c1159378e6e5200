// Where the caller's own control groups lie in the file system: /proc/self/mountinfo and /proc/self/cgroup put
// together. proc_pid_mountinfo(5), cgroups(7). Pure text in, paths out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace belljar {

// The controllers Belljar uses. cpuacct exists on v1 alone: there the cpu controller doesn't count exact use. blkio is
// v1's name for what became io, which does less there.
enum class Controller : std::uint8_t { memory, cpu, pids, cpuacct, blkio, io };

inline constexpr std::size_t kControllerCount = 6;
inline constexpr std::array<std::string_view, kControllerCount> kControllerNames = {"memory",  "cpu",   "pids",
                                                                                    "cpuacct", "blkio", "io"};

// A small set of Controllers.
class ControllerSet {
 public:
  constexpr ControllerSet() = default;
  constexpr ControllerSet& add(Controller controller) {
    bits_ = static_cast<std::uint8_t>(bits_ | bit(controller));
    return *this;
  }
  constexpr bool has(Controller controller) const { return (bits_ & bit(controller)) != 0; }
  constexpr int size() const { return __builtin_popcount(bits_); }
  constexpr bool operator==(const ControllerSet&) const = default;

 private:
  static constexpr std::uint8_t bit(Controller controller) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(controller));
  }
  std::uint8_t bits_ = 0;
};

// The known names in a line of words between `separator`s ("cpu,cpuacct", "cpuset cpu io memory pids").
ControllerSet parse_controllers(std::string_view words, char separator);

// Each path is absolute and names the caller's own group; empty where there is none that can be seen. Co-mounted
// controllers ("cpu,cpuacct") share one path.
struct CgroupLayout {
  std::array<std::string, kControllerCount> v1_groups;  // indexed by Controller
  std::string v2_group;
  std::string v2_mount;           // the topmost folder of v2_group's hierarchy that can be seen
  bool read_only_mounts = false;  // something was passed over because its mount is read-only

  const std::string& v1_group(Controller controller) const { return v1_groups[static_cast<std::size_t>(controller)]; }
};

// `mountinfo` and `own_groups` are the contents of /proc/self/mountinfo and /proc/self/cgroup. Lines that can't be read
// are passed over, and so are mounts that don't show the caller's own group (a bind mount of another subtree).
CgroupLayout find_layout(std::string_view mountinfo, std::string_view own_groups);

}  // namespace belljar
