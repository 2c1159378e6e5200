#include "tiers/container/lease.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace belljar::container {
namespace {

TEST(Lease, IsExclusiveAndComesBackWithItsHolder) {
  const auto name = "lease-test-" + std::to_string(::getpid());
  auto first = LeaseFile::open(name);
  const auto second = LeaseFile::open(name);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->try_take(7));
  EXPECT_FALSE(second->try_take(7));
  EXPECT_TRUE(second->try_take(8));
  {
    const LeaseFile gone = std::move(*first);
  }
  EXPECT_TRUE(second->try_take(7));
  ::unlink((*run_folder() + "/" + name).c_str());
}

TEST(Lease, GivesEachSandboxARangeOfItsOwn) {
  const auto first = lease_uid_range();
  const auto second = lease_uid_range();
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->base, second->base);
  EXPECT_GE(first->base, 0x70000000U);
}

}  // namespace
}  // namespace belljar::container
