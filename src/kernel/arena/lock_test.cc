#include "kernel/arena/lock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "kernel/base/hosted.h"

namespace belljar::kernel {
namespace {

TEST(Lock, LetsOneThreadInAtATime) {
  HostedKernel kernel;
  Lock lock{LockRank::object};
  std::uint64_t count = 0;
  constexpr int kTurns = 20000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        LockGuard guard(lock);
        count = count + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4U * kTurns);
  EXPECT_EQ(lock.holder(), 0U);
}

TEST(LockDeathTest, StopsOnAnOrderThatCouldDeadlock) {
  EXPECT_DEATH(
      {
        HostedKernel kernel;
        Lock object{LockRank::object};
        Lock tree{LockRank::tree};
        LockGuard first(object);
        LockGuard second(tree);
      },
      "out of order");
}

}  // namespace
}  // namespace belljar::kernel
