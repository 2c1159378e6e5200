// The choice of the place and the error paths, on a fake tree of plain files.
#include "cgroup/site.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cgroup/group_folder.h"
#include "cgroup/groups.h"
#include "spec/errors.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Version = CgroupSupport::Version;

// A folder with a fake proc and fake cgroup mounts. Permissions are judged as an ordinary user: root may write
// anywhere.
class SiteTest : public testing::Test {
 protected:
  SiteTest() {
    char folder[] = "/tmp/belljar-site-XXXXXX";
    if (::mkdtemp(folder) == nullptr) std::abort();
    root_ = folder;
    if (::geteuid() == 0) {
      if (::chown(folder, kNobody, kNobody) != 0 || ::seteuid(kNobody) != 0) std::abort();
      was_root_ = true;
    }
    write("proc/swaps", "Filename Type Size Used Priority\n");
  }
  ~SiteTest() override {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.is_directory()) (void)::chmod(entry.path().c_str(), 0755);  // a user can't empty what it may not write
    }
    fs::remove_all(root_);
  }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text;
  }
  void set_mode(const std::string& path, mode_t mode) { ASSERT_EQ(::chmod((root_ + "/" + path).c_str(), mode), 0); }

  // A v2 group with its control files.
  void v2_group(const std::string& path, const std::string& controllers, const std::string& enabled,
                const std::string& processes) {
    write("v2" + path + "/cgroup.type", "domain\n");
    write("v2" + path + "/cgroup.controllers", controllers + "\n");
    write("v2" + path + "/cgroup.subtree_control", enabled + "\n");
    write("v2" + path + "/cgroup.procs", processes);
    write("v2" + path + "/memory.swap.max", "max\n");
  }
  void v2_root(const std::string& processes) {
    v2_group("", kAll, kAll, processes);
    fs::remove(root_ + "/v2/cgroup.type");
    fs::remove(root_ + "/v2/memory.swap.max");
  }
  void mount_v2(const std::string& own_group) {
    write("proc/self/mountinfo", fmt::format("29 22 0:26 / {}/v2 rw - cgroup2 cgroup2 rw\n", root_));
    write("proc/self/cgroup", "0::" + own_group + "\n");
  }
  void mount_v1() {
    write("proc/self/mountinfo", fmt::format("1 0 0:1 / {0}/memory rw - cgroup cgroup rw,memory\n"
                                             "2 0 0:2 / {0}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                                             "3 0 0:3 / {0}/pids rw - cgroup cgroup rw,pids\n"
                                             "4 0 0:4 / {0}/v2 rw - cgroup2 cgroup2 rw\n",
                                             root_));
    write("proc/self/cgroup", "3:pids:/\n2:cpu,cpuacct:/\n1:memory:/a\n0::/\n");
    write("memory/a/memory.memsw.limit_in_bytes", "");
    write("cpu/x", "");
    write("pids/x", "");
    v2_group("", "hugetlb", "", "");
  }
  CgroupSite site() { return find_site(root_ + "/proc"); }

  static constexpr unsigned kNobody = 65534;
  static constexpr const char* kAll = "cpu memory pids";
  std::string root_;
  bool was_root_ = false;
};

TEST_F(SiteTest, HybridTakesV1) {
  mount_v1();
  const CgroupSite found = site();
  EXPECT_EQ(found.support.version, Version::v1);
  EXPECT_TRUE(found.support.memory && found.support.swap && found.support.cpu && found.support.tasks);
  EXPECT_EQ(found.support.why_not, "");
  EXPECT_EQ(found.swap_control, SwapControl::limited);
  ASSERT_EQ(found.bases.size(), 3U);  // cpu and cpuacct are one hierarchy
  EXPECT_EQ(found.bases[0].folder(), root_ + "/memory/a/belljar");
  EXPECT_EQ(found.bases[1].controllers, ControllerSet().add(Controller::cpu).add(Controller::cpuacct));
}

TEST_F(SiteTest, V1WithoutWriteAccessIsNone) {
  mount_v1();
  for (const char* group : {"memory/a", "cpu", "pids", "v2"}) set_mode(group, 0555);
  const CgroupSite found = site();
  EXPECT_EQ(found.support.version, Version::none);
  EXPECT_FALSE(found.support.memory || found.support.swap || found.support.cpu || found.support.tasks);
  EXPECT_THAT(found.support.why_not, HasSubstr("this user may make no control group"));
  EXPECT_TRUE(found.bases.empty());
  const auto none = create_groups_at(found, "one", Limits());
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->get(), nullptr);
}

TEST_F(SiteTest, V1BelljarFolderHandedToTheUserCounts) {
  mount_v1();
  for (const char* base : {"memory/a/belljar", "cpu/belljar"}) fs::create_directories(root_ + "/" + base);
  for (const char* group : {"memory/a", "cpu", "pids"}) set_mode(group, 0555);
  const CgroupSite found = site();
  EXPECT_EQ(found.support.version, Version::v1);
  EXPECT_TRUE(found.support.memory && found.support.cpu);
  EXPECT_FALSE(found.support.tasks);
  EXPECT_THAT(found.support.why_not, HasSubstr("pids"));
}

TEST_F(SiteTest, SwapIsHeldByAbsenceOnlyWhereThereIsNone) {
  mount_v1();
  fs::remove(root_ + "/memory/a/memory.memsw.limit_in_bytes");
  EXPECT_EQ(site().swap_control, SwapControl::host_has_no_swap);
  EXPECT_TRUE(site().support.swap);
  write("proc/swaps", "Filename Type Size Used Priority\n/dev/vdb partition 1048572 0 -2\n");
  EXPECT_EQ(site().swap_control, SwapControl::none);
  EXPECT_FALSE(site().support.swap);
}

TEST_F(SiteTest, BootOptionsThatStopCountingAreNoticed) {
  mount_v1();
  EXPECT_TRUE(site().support.kernel_memory);
  write("proc/cmdline", "ro quiet cgroup.memory=nobpf console=nokmem\n");
  EXPECT_TRUE(site().support.kernel_memory);
  write("proc/cmdline", "ro cgroup.memory=nosocket,nokmem quiet\n");
  EXPECT_FALSE(site().support.kernel_memory);
  EXPECT_THAT(site().support.why_not, HasSubstr("cgroup.memory="));
}

TEST_F(SiteTest, NothingMounted) {
  write("proc/self/mountinfo", "27 1 254:0 / / rw - ext4 /dev/vda rw\n");
  write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(site().support.version, Version::none);
  EXPECT_THAT(site().support.why_not, HasSubstr("no mounted cgroup file system"));
  fs::remove_all(root_ + "/proc/self");
  EXPECT_EQ(site().support.version, Version::none);
}

TEST_F(SiteTest, ReadOnlyContainer) {
  v2_group("", kAll, "", "1\n");
  mount_v2("/");
  write("proc/self/mountinfo", fmt::format("29 22 0:26 / {}/v2 ro - cgroup2 cgroup2 rw\n", root_));
  EXPECT_EQ(site().support.version, Version::none);
  EXPECT_THAT(site().support.why_not, HasSubstr("read-only"));
}

TEST_F(SiteTest, V2RootMayKeepItsProcesses) {
  v2_root("1\n");
  mount_v2("/");
  const CgroupSite found = site();
  EXPECT_EQ(found.support.version, Version::v2);
  EXPECT_EQ(found.support.why_not, "");
  EXPECT_EQ(found.parent_use, ParentUse::as_is);
  ASSERT_EQ(found.bases.size(), 1U);
  EXPECT_EQ(found.bases[0].folder(), root_ + "/v2/belljar");
}

TEST_F(SiteTest, V2TakesTheNearestAncestorWithAllControllers) {
  v2_root("1\n");
  v2_group("/user", kAll, kAll, "");
  v2_group("/user/app", "memory pids", "memory pids", "");
  v2_group("/user/app/scope", "memory pids", "", "1\n");
  mount_v2("/user/app/scope");
  ASSERT_EQ(site().bases.size(), 1U);
  EXPECT_EQ(site().bases[0].parent, root_ + "/v2/user");
}

TEST_F(SiteTest, V2WithoutACpuControllerAnywhereSaysSo) {
  v2_group("", "memory pids", "memory pids", "");
  v2_group("/app", "memory pids", "", "");
  v2_group("/app/scope", "memory pids", "", "1\n");
  mount_v2("/app/scope");
  EXPECT_TRUE(site().support.memory && site().support.tasks);
  EXPECT_FALSE(site().support.cpu);
  EXPECT_THAT(site().support.why_not, HasSubstr("cpu"));
  EXPECT_EQ(site().bases[0].parent, root_ + "/v2/app");
}

TEST_F(SiteTest, V2DelegatedGroupOfOurOwnIsLeftFirst) {
  v2_root("1\n");
  v2_group("/scope", kAll, "", fmt::format("{}\n", ::getpid()));
  set_mode("v2", 0555);
  mount_v2("/scope");
  EXPECT_EQ(site().support.version, Version::v2);
  EXPECT_EQ(site().parent_use, ParentUse::leave_first);
  EXPECT_EQ(site().bases[0].parent, root_ + "/v2/scope");
}

TEST_F(SiteTest, V2GroupThatWeMovedToIsNotLeftAgain) {
  v2_root("1\n");
  v2_group("/scope", kAll, kAll, "");
  v2_group("/scope/belljar-supervisor", kAll, "", fmt::format("{}\n", ::getpid()));
  mount_v2("/scope/belljar-supervisor");
  EXPECT_EQ(site().parent_use, ParentUse::as_is);
  EXPECT_EQ(site().bases[0].parent, root_ + "/v2/scope");
}

TEST_F(SiteTest, V2GroupSharedWithStrangersIsNoPlace) {
  v2_root("1\n");
  v2_group("/scope", kAll, "", fmt::format("{}\n1\n", ::getpid()));
  set_mode("v2", 0555);
  mount_v2("/scope");
  EXPECT_EQ(site().support.version, Version::none);
  EXPECT_FALSE(site().support.scope_helps);
}

TEST_F(SiteTest, V2UserManagerIsNamedAsTheRemedy) {
  v2_root("1\n");
  v2_group("/session", kAll, "", "1\n");
  for (const char* group : {"v2", "v2/session"}) set_mode(group, 0755);
  const auto uid = ::geteuid();
  v2_group(fmt::format("/user.slice/user-{}.slice/user@{}.service", uid, uid), kAll, kAll, "");
  for (const char* group : {"v2", "v2/session"}) set_mode(group, 0555);
  mount_v2("/session");
  EXPECT_TRUE(site().support.scope_helps);
  EXPECT_THAT(site().support.why_not, HasSubstr("systemd-run --user --scope"));
}

TEST_F(SiteTest, V2NeedsTheRightToMoveProcesses) {
  v2_root("1\n");
  set_mode("v2/cgroup.procs", 0444);
  mount_v2("/");
  EXPECT_EQ(site().support.version, Version::none);
}

TEST_F(SiteTest, ALimitThatCannotBeSetIsNamedAndNothingIsLeft) {
  mount_v1();
  for (const char* base : {"memory/a/belljar", "cpu/belljar", "pids/belljar"})
    fs::create_directories(root_ + "/" + base);
  const auto made = create_groups_at(site(), "one", Limits());  // a plain folder gets no tasks file
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message, HasSubstr("/memory/a/belljar/one"));
  EXPECT_FALSE(fs::exists(root_ + "/memory/a/belljar/one"));
  EXPECT_FALSE(fs::exists(root_ + "/pids/belljar/one"));

  v2_root("1\n");
  mount_v2("/");
  fs::create_directories(root_ + "/v2/belljar");
  write("v2/belljar/cgroup.subtree_control", "");
  const auto v2 = create_groups_at(site(), "one", Limits());
  ASSERT_FALSE(v2.has_value());
  EXPECT_EQ(v2.error().code, ErrorCode::cannot_enforce);
  EXPECT_THAT(v2.error().message, HasSubstr("memory limit"));
  EXPECT_FALSE(fs::exists(root_ + "/v2/belljar/one"));
}

TEST_F(SiteTest, AFolderThatCannotBeMadeIsRefused) {
  mount_v1();
  const CgroupSite found = site();
  set_mode("memory/a", 0555);
  const auto refused = create_groups_at(found, "one", Limits());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::cannot_enforce);
  set_mode("memory/a", 0755);
  fs::create_directories(root_ + "/memory/a/belljar/one");
  const auto taken = create_groups_at(found, "one", Limits());
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code, ErrorCode::start_failed);
  EXPECT_TRUE(fs::exists(root_ + "/memory/a/belljar/one"));  // another's: left alone
  for (const char* name : {"", ".", "..", "a/b", ".hidden"}) {
    EXPECT_FALSE(create_groups_at(found, name, Limits()).has_value()) << name;
  }
}

TEST_F(SiteTest, SweepRemovesOnlyTheDead) {
  mount_v1();
  for (const char* group : {"memory/a/belljar/dead", "cpu/belljar/dead", "cpu/belljar/live", "pids/belljar/dead2"}) {
    fs::create_directories(root_ + "/" + group);
  }
  EXPECT_EQ(sweep_site(site(), [](const std::string& name) { return name == "live"; }), 2U);
  EXPECT_FALSE(fs::exists(root_ + "/memory/a/belljar"));  // empty, so removed as well
  EXPECT_FALSE(fs::exists(root_ + "/pids/belljar"));
  EXPECT_FALSE(fs::exists(root_ + "/cpu/belljar/dead"));
  EXPECT_TRUE(fs::exists(root_ + "/cpu/belljar/live"));
}

TEST(CounterIn, FindsWholeKeys) {
  EXPECT_EQ(counter_in("low 1\noom 2\noom_kill 3\n", "oom_kill"), 3U);
  EXPECT_EQ(counter_in("low 1\noom 2\noom_kill 3", "oom"), 2U);
  EXPECT_EQ(counter_in("oom_kill\n", "oom_kill"), 0U);
  EXPECT_EQ(counter_in("", "max"), 0U);
}

}  // namespace
}  // namespace belljar
