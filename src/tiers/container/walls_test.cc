#include "tiers/container/walls.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "spec/errors.h"

namespace belljar::container {
namespace {

HostFacts user_facts(int landlock_abi) {
  HostFacts facts;
  facts.privilege = Privilege::user;
  facts.landlock_abi = landlock_abi;
  return facts;
}

TEST(OwnBinary, OfTheCallerWithoutLandlockIsRefused) {
  const std::string own = testing::TempDir() + "belljar_own_binary_" + std::to_string(::getpid());
  std::ofstream(own) << "x";
  ::chmod(own.c_str(), 0555);
  const Result<void> checked = check_own_binary(user_facts(0), own.c_str());
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::host_unsupported);
  EXPECT_TRUE(check_own_binary(user_facts(1), own.c_str()));
  HostFacts root = user_facts(0);
  root.privilege = Privilege::root;  // the program's id is another one
  EXPECT_TRUE(check_own_binary(root, own.c_str()));
  ::unlink(own.c_str());
}

TEST(OwnBinary, ThatCanNotBeLookedAtIsRefused) {
  EXPECT_FALSE(check_own_binary(user_facts(0), "/no/such/file"));
}

TEST(OwnBinary, OfAnotherUser) {
  if (::geteuid() == 0) {  // root may write any file, so it counts as root's own
    EXPECT_FALSE(check_own_binary(user_facts(0), "/bin/sh"));
  } else {
    EXPECT_TRUE(check_own_binary(user_facts(0), "/bin/sh"));
  }
}

// A caller's limit that this host holds only weakly.
TEST(Demands, ANamedLimitHoldsInFullUnlessTheCallerAcceptsLess) {
  const std::vector<WallReport> walls = {{"memory", WallState::weaker, "why", "remedy"},
                                         {"tasks", WallState::missing, "why", "remedy"}};
  SandboxSpec spec;
  EXPECT_TRUE(check_demands(walls, spec));  // nobody named it
  spec.limits.memory = {kGiB, LimitSource::named};
  EXPECT_FALSE(check_demands(walls, spec));
  spec.weaker_accepted = {"memory"};
  EXPECT_TRUE(check_demands(walls, spec));
  spec.required = {"memory"};
  EXPECT_FALSE(check_demands(walls, spec));
  spec.required = {};
  spec.limits.tasks = {5, LimitSource::named};
  spec.weaker_accepted = {"memory", "tasks"};
  EXPECT_FALSE(check_demands(walls, spec));  // not held at all is not weaker
}

TEST(Demands, AllIsEveryWallThatThereIs) {
  SandboxSpec spec;
  spec.required = {"all"};
  EXPECT_TRUE(check_demands({{"files", WallState::enforced, "", ""}}, spec));
  const auto refused =
      check_demands({{"files", WallState::enforced, "", ""}, {"groups", WallState::weaker, "why", "remedy"}}, spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "--require groups can't be enforced in full on this host: why; to get it: remedy");
}

std::string remedy_of(std::string_view name, const HostFacts& facts) {
  for (const WallReport& wall : assess_walls(facts)) {
    if (wall.name == name) return wall.remedy;
  }
  return "no such wall";
}

TEST(Remedies, NobodyIsToldToBeWhatTheyAre) {
  HostFacts facts = user_facts(1);
  facts.cgroups.why_not = "no control groups";
  facts.why_not_root = "the caller is not root";
  EXPECT_EQ(remedy_of("uid_range", facts), "run as root");
  EXPECT_EQ(remedy_of("memory", facts), "run as root, or where a cgroup is delegated to this user");
  facts.why_not_root = "root lacks CAP_KILL here";
  EXPECT_EQ(remedy_of("uid_range", facts), "run as the host's root, with all its capabilities");
  facts.privilege = Privilege::root;
  for (const char* const name : {"memory", "cpus", "tasks", "read_rate"}) {
    EXPECT_EQ(remedy_of(name, facts).find("root"), std::string::npos) << remedy_of(name, facts);
  }
}

}  // namespace
}  // namespace belljar::container
