#include "kernel/time/timers.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernel/base/hosted.h"

namespace belljar::kernel {
namespace {

class NotedTimer final : public Timer {
 public:
  NotedTimer(std::vector<int>& fired, int name) : fired_(fired), name_(name) {}
  void fire() override {
    fired_.push_back(name_);
    if (again_at != kNever) arm(std::exchange(again_at, kNever));
  }
  Deadline again_at = kNever;

 private:
  std::vector<int>& fired_;
  int name_;
};

TEST(Timers, FireInOrderOfTheirDeadlines) {
  HostedKernel kernel;
  std::vector<int> fired;
  std::vector<Ref<NotedTimer>> timers;
  for (int i = 0; i < 1000; ++i) {
    timers.push_back(make_ref<NotedTimer>(fired, i * 7919 % 1000));
    timers.back()->arm(static_cast<Deadline>(1000 + i * 7919 % 1000));
  }
  EXPECT_EQ(run_due_timers(999), 1000U);
  EXPECT_TRUE(fired.empty());
  EXPECT_EQ(run_due_timers(1499), 1500U);
  ASSERT_EQ(fired.size(), 500U);
  EXPECT_EQ(run_due_timers(5000), kNever);
  ASSERT_EQ(fired.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(fired[static_cast<std::size_t>(i)], i);
}

TEST(Timers, DisarmedTimersDoNotFire) {
  HostedKernel kernel;
  std::vector<int> fired;
  std::vector<Ref<NotedTimer>> timers;
  for (int i = 0; i < 100; ++i) {
    timers.push_back(make_ref<NotedTimer>(fired, i));
    timers.back()->arm(static_cast<Deadline>(i));
  }
  for (std::size_t i = 0; i < 100; i += 2) {
    EXPECT_TRUE(timers[i]->disarm());
    EXPECT_FALSE(timers[i]->disarm());
  }
  EXPECT_EQ(run_due_timers(1000), kNever);
  ASSERT_EQ(fired.size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(fired[i], static_cast<int>(2 * i + 1));
}

TEST(Timers, CanBeArmedAgainEarlierAndLater) {
  HostedKernel kernel;
  std::vector<int> fired;
  const auto one = make_ref<NotedTimer>(fired, 1);
  const auto two = make_ref<NotedTimer>(fired, 2);
  one->arm(100);
  two->arm(200);
  one->arm(300);
  EXPECT_EQ(run_due_timers(150), 200U);
  two->arm(160);
  EXPECT_EQ(run_due_timers(170), 300U);
  EXPECT_EQ(run_due_timers(300), kNever);
  EXPECT_EQ(fired, (std::vector{2, 1}));
}

TEST(Timers, AnIntervalArmsItselfAgain) {
  HostedKernel kernel;
  std::vector<int> fired;
  const auto timer = make_ref<NotedTimer>(fired, 1);
  timer->again_at = 20;
  timer->arm(10);
  EXPECT_EQ(run_due_timers(15), 20U);
  EXPECT_EQ(run_due_timers(25), kNever);
  EXPECT_EQ(fired.size(), 2U);
}

TEST(Timers, TheListKeepsATimerAliveUntilItHasFired) {
  HostedKernel kernel;
  timers_word();  // makes the list
  const std::uint64_t before = heap_bytes_used();
  std::vector<int> fired;
  make_ref<NotedTimer>(fired, 1)->arm(10);
  EXPECT_GT(heap_bytes_used(), before);
  run_due_timers(10);
  EXPECT_EQ(fired.size(), 1U);
  auto disarmed = make_ref<NotedTimer>(fired, 2);
  disarmed->arm(10);
  disarmed->disarm();
  disarmed = nullptr;
  EXPECT_EQ(heap_bytes_used(), before);
}

TEST(Timers, TheWordChangesForAnEarlierDeadlineOnly) {
  HostedKernel kernel;
  std::vector<int> fired;
  const auto one = make_ref<NotedTimer>(fired, 1);
  const auto two = make_ref<NotedTimer>(fired, 2);
  one->arm(100);
  const std::uint32_t seen = timers_word();
  two->arm(200);
  EXPECT_EQ(timers_word(), seen);
  two->arm(50);
  EXPECT_NE(timers_word(), seen);
  one->disarm();
  two->disarm();
}

}  // namespace
}  // namespace belljar::kernel
