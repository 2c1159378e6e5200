#include "wasm/job.h"

#include <gtest/gtest.h>

namespace belljar::wasm {
namespace {

TEST(Job, RunComesBackAsItWas) {
  const RunJob job{.path = "/m",
                   .fuel = 12,
                   .memory_bytes = 1 << 20,
                   .folders = {"/tmp", "/data"},
                   .variables = {"A=b", "C="},
                   .arguments = {"m.wasm", "", "-x"}};
  const auto read = RunJob::from_arguments(job.to_arguments());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->to_arguments(), job.to_arguments());
  EXPECT_EQ(read->folders, job.folders);
  EXPECT_EQ(read->variables, job.variables);
  EXPECT_EQ(read->arguments, job.arguments);
  EXPECT_EQ(read->fuel, job.fuel);
}

TEST(Job, FuelOfNoneIsNotFuelOfZero) {
  EXPECT_FALSE(RunJob::from_arguments(RunJob{.path = "/m"}.to_arguments())->fuel);
  EXPECT_EQ(RunJob::from_arguments(RunJob{.path = "/m", .fuel = 0}.to_arguments())->fuel, 0U);
}

TEST(Job, CompileComesBackAsItWas) {
  const CompileJob job{.path = "/m", .fuel = FuelIs::counted, .code_for = CodeFor::any_processor, .bytes_max = 5};
  const auto read = CompileJob::from_arguments(job.to_arguments());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->to_arguments(), job.to_arguments());
  EXPECT_FALSE(RunJob::from_arguments(job.to_arguments()));
}

TEST(Job, IsRefusedWhereItIsNone) {
  std::vector<std::string> arguments = RunJob{.path = "/m", .folders = {"/tmp"}}.to_arguments();
  arguments[5] = "2";  // more folders than there are words
  EXPECT_FALSE(RunJob::from_arguments(arguments));
  arguments[5] = "-1";
  EXPECT_FALSE(RunJob::from_arguments(arguments));
  arguments[5] = "1";
  EXPECT_TRUE(RunJob::from_arguments(arguments));
  arguments[6] = "1";  // more variables than there are words
  EXPECT_FALSE(RunJob::from_arguments(arguments));
  EXPECT_FALSE(RunJob::from_arguments({"belljar-wasm", "run"}));
  EXPECT_FALSE(CompileJob::from_arguments({"belljar-wasm"}));
  EXPECT_TRUE(CompileJob::from_arguments({"belljar-wasm", "compile", "/m", "0", "any", "5"}));
  EXPECT_FALSE(CompileJob::from_arguments({"belljar-wasm", "compile", "/m", "0", "some", "5"}));
}

}  // namespace
}  // namespace belljar::wasm
