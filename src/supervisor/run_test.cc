// What run() promises to those who link it. What happens inside a sandbox is tested through the command.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "belljar/belljar.h"

namespace belljar {
namespace {

constexpr int kThreads = 4;
constexpr int kRunsOfEach = 3;

// Each run has an answer of its own, so that streams or statuses of two runs can't be taken for each other.
void run_and_check(int number) {
  SandboxSpec spec;
  spec.command = {"sh", "-c", fmt::format("echo out {0}; echo err {0} >&2; exit {0}", number)};
  const Result<Outcome> outcome = run(spec);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->exit_code, number);
  EXPECT_EQ(outcome->standard_output.bytes, fmt::format("out {}\n", number));
  EXPECT_EQ(outcome->standard_error.bytes, fmt::format("err {}\n", number));
}

TEST(Run, IsThreadSafe) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([thread] {
      for (int i = 0; i < kRunsOfEach; ++i) run_and_check(thread * kRunsOfEach + i);
    });
  }
}

TEST(Run, RefusesWhatIsNoProgram) {
  const Result<Outcome> outcome = run(SandboxSpec{});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace belljar
