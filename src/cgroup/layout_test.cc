#include "cgroup/layout.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

TEST(ParseControllers, KeepsTheKnownNames) {
  EXPECT_EQ(parse_controllers("cpuset cpu io memory pids", ' '),
            ControllerSet().add(Controller::cpu).add(Controller::io).add(Controller::memory).add(Controller::pids));
  EXPECT_EQ(parse_controllers("rw,blkio", ','), ControllerSet().add(Controller::blkio));
  EXPECT_EQ(parse_controllers("rw,cpu,cpuacct", ','), ControllerSet().add(Controller::cpu).add(Controller::cpuacct));
  EXPECT_EQ(parse_controllers("", ',').size(), 0);
  EXPECT_EQ(parse_controllers("cpuset,memoryx,xpids", ',').size(), 0);
}

// Controllers on v1, each mounted apart; v2 mounted beside them with none.
TEST(FindLayout, HybridWithNestedMemoryGroup) {
  const auto layout = find_layout(
      "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
      "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
      "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
      "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
      "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
      "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
      "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
      "9:name=systemd:/\n8:pids:/\n4:memory:/builds/569f\n2:cpuacct:/\n1:cpu:/\n0::/\n");
  EXPECT_EQ(layout.v1_group(Controller::memory), "/sys/fs/cgroup/memory/builds/569f");
  EXPECT_EQ(layout.v1_group(Controller::cpu), "/sys/fs/cgroup/cpu");
  EXPECT_EQ(layout.v1_group(Controller::cpuacct), "/sys/fs/cgroup/cpuacct");
  EXPECT_EQ(layout.v1_group(Controller::pids), "/sys/fs/cgroup/pids");
  EXPECT_EQ(layout.v2_group, "/sys/fs/cgroup/unified");
  EXPECT_EQ(layout.v2_mount, "/sys/fs/cgroup/unified");
  EXPECT_FALSE(layout.read_only_mounts);
}

// Debian 10 with systemd: cpu and cpuacct in one hierarchy, optional fields in the mount lines.
TEST(FindLayout, V1WithCoMountedControllers) {
  const auto layout = find_layout(
      "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
      "33 25 0:29 / /sys/fs/cgroup/memory rw,nosuid shared:13 master:2 - cgroup cgroup rw,memory\n"
      "34 25 0:30 / /sys/fs/cgroup/pids rw,nosuid shared:14 - cgroup cgroup rw,pids\n",
      "10:cpu,cpuacct:/user.slice\n7:memory:/user.slice/user-0.slice/session-1.scope\n5:pids:/user.slice\n");
  EXPECT_EQ(layout.v1_group(Controller::cpu), "/sys/fs/cgroup/cpu,cpuacct/user.slice");
  EXPECT_EQ(layout.v1_group(Controller::cpuacct), "/sys/fs/cgroup/cpu,cpuacct/user.slice");
  EXPECT_EQ(layout.v1_group(Controller::memory), "/sys/fs/cgroup/memory/user.slice/user-0.slice/session-1.scope");
  EXPECT_EQ(layout.v2_group, "");
}

TEST(FindLayout, PureV2) {
  const auto layout = find_layout("29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
                                  "0::/user.slice/user-1000.slice/session-3.scope\n");
  EXPECT_EQ(layout.v2_group, "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope");
  EXPECT_EQ(layout.v2_mount, "/sys/fs/cgroup");
  EXPECT_EQ(layout.v1_group(Controller::memory), "");
}

// A container with its own cgroup namespace, its cgroup file system read-only.
TEST(FindLayout, ReadOnlyV2InContainer) {
  const auto layout = find_layout("812 811 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n", "0::/\n");
  EXPECT_EQ(layout.v2_group, "");
  EXPECT_TRUE(layout.read_only_mounts);
}

// A v1 container without a cgroup namespace: the mount shows the container's own group at its top.
TEST(FindLayout, V1ContainerRootedBelow) {
  const std::string_view mountinfo = "733 732 0:29 /docker/ab12 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  EXPECT_EQ(find_layout(mountinfo, "4:memory:/docker/ab12\n").v1_group(Controller::memory), "/sys/fs/cgroup/memory");
  EXPECT_EQ(find_layout(mountinfo, "4:memory:/docker/ab12/sub\n").v1_group(Controller::memory),
            "/sys/fs/cgroup/memory/sub");
  EXPECT_EQ(find_layout(mountinfo, "4:memory:/docker/ab123\n").v1_group(Controller::memory), "");
  EXPECT_EQ(find_layout(mountinfo, "4:memory:/\n").v1_group(Controller::memory), "");
}

TEST(FindLayout, GroupOutsideTheNamespaceIsNoPlace) {
  EXPECT_EQ(find_layout("29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/../other\n").v2_group, "");
  EXPECT_EQ(find_layout("29 22 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/\n").v2_group, "");
}

TEST(FindLayout, TakesTheFirstMountThatShowsTheGroup) {
  const auto layout = find_layout(
      "50 22 0:26 /elsewhere /mnt/a rw - cgroup2 cgroup2 rw\n"
      "51 22 0:26 / /mnt/b ro - cgroup2 cgroup2 rw\n"
      "52 22 0:26 / /mnt/c rw - cgroup2 cgroup2 rw\n"
      "53 22 0:26 / /mnt/d rw - cgroup2 cgroup2 rw\n",
      "0::/me\n");
  EXPECT_EQ(layout.v2_group, "/mnt/c/me");
  EXPECT_TRUE(layout.read_only_mounts);
}

TEST(FindLayout, OddPathsAndBrokenLines) {
  const auto layout = find_layout(
      "\n - \nx - cgroup2\n31 23 0:28\n"
      "29 22 0:26 / /sys/with\\040space\\134 rw - cgroup2 cgroup2 rw\n",
      "\n:\n0:\n0::relative\n0::/a:b c\n");
  EXPECT_EQ(layout.v2_group, "/sys/with space\\/a:b c");
  EXPECT_EQ(find_layout("", "").v2_group, "");
  EXPECT_EQ(find_layout("29 22 0:26 / /c rw - cgroup2 cgroup2 rw", "0::/x").v2_group, "/c/x");
}

}  // namespace
}  // namespace belljar
