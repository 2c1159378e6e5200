#include <gtest/gtest.h>
#include <linux/capability.h>

#include "kernel/base/hosted.h"
#include "kernel/syscalls/call_hosted.h"

namespace belljar::kernel {
namespace {

constexpr int kKeep = -1;

struct Ids : testing::Test {
  HostedKernel kernel;
  Credentials& own = kernel.task().credentials;
  void SetUp() override {
    own.uid = own.euid = own.suid = own.fsuid = 1000;
    own.gid = own.egid = own.sgid = own.fsgid = 1000;
  }
};

TEST_F(Ids, SetuidTakesTheRealOrTheSavedId) {
  EXPECT_EQ(call(sys_setuid, 1000), 0);
  EXPECT_EQ(call(sys_setuid, 0), -EPERM);
  EXPECT_EQ(call(sys_setuid, -1), -EINVAL);
  own.suid = 7;
  EXPECT_EQ(call(sys_setuid, 7), 0);
  EXPECT_EQ(own.euid, 7U);
  EXPECT_EQ(own.fsuid, 7U);
  EXPECT_EQ(own.uid, 1000U);
}

TEST_F(Ids, NobodyHasARightToOtherIds) {
  own.uid = own.euid = own.suid = own.fsuid = 0;
  EXPECT_EQ(call(sys_setuid, 1000), -EPERM);
  EXPECT_EQ(call(sys_setresuid, 1, 1, 1), -EPERM);
  EXPECT_EQ(call(sys_setgroups, 0, nullptr), -EPERM);
}

TEST_F(Ids, SetreuidSetsTheSavedIdWithTheRealOne) {
  own.euid = 7;
  EXPECT_EQ(call(sys_setreuid, 7, 1000), 0);
  EXPECT_EQ(own.uid, 7U);
  EXPECT_EQ(own.euid, 1000U);
  EXPECT_EQ(own.suid, 1000U);
  EXPECT_EQ(call(sys_setreuid, kKeep, 5), -EPERM);
  EXPECT_EQ(call(sys_setreuid, kKeep, kKeep), 0);
}

TEST_F(Ids, SetresgidChangesTheNamedOnes) {
  own.sgid = 9;
  EXPECT_EQ(call(sys_setresgid, kKeep, 9, kKeep), 0);
  std::uint32_t ids[3];
  EXPECT_EQ(call(sys_getresgid, &ids[0], &ids[1], &ids[2]), 0);
  EXPECT_EQ(ids[0], 1000U);
  EXPECT_EQ(ids[1], 9U);
  EXPECT_EQ(ids[2], 9U);
  EXPECT_EQ(call(sys_getresgid, 8, &ids[1], &ids[2]), -EFAULT);
}

TEST_F(Ids, SetfsuidTellsTheOldIdAndNothingElse) {
  EXPECT_EQ(call(sys_setfsuid, 5), 1000);
  EXPECT_EQ(call(sys_setfsuid, 1000), 1000);
}

TEST_F(Ids, GroupsAreCountedThenCopied) {
  own.group_count = 2;
  own.groups[0] = 10;
  own.groups[1] = 20;
  std::uint32_t groups[4] = {};
  EXPECT_EQ(call(sys_getgroups, 0, nullptr), 2);
  EXPECT_EQ(call(sys_getgroups, 1, groups), -EINVAL);
  EXPECT_EQ(call(sys_getgroups, -1, groups), -EINVAL);
  EXPECT_EQ(call(sys_getgroups, 4, groups), 2);
  EXPECT_EQ(groups[1], 20U);
}

TEST_F(Ids, NoTaskHasACapability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {{1, 1, 1}, {1, 1, 1}};
  EXPECT_EQ(call(sys_capget, &header, data), 0);
  EXPECT_EQ(data[1].permitted, 0U);
  EXPECT_EQ(call(sys_capset, &header, data), 0);
  data[0].effective = 1;
  EXPECT_EQ(call(sys_capset, &header, data), -EPERM);
  header.version = 1;
  EXPECT_EQ(call(sys_capget, &header, data), -EINVAL);
  EXPECT_EQ(header.version, std::uint32_t{_LINUX_CAPABILITY_VERSION_3});
  header.version = 1;
  EXPECT_EQ(call(sys_capget, &header, nullptr), 0);
}

}  // namespace
}  // namespace belljar::kernel
