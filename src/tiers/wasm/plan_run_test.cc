#include "tiers/wasm/plan_run.h"

#include <gtest/gtest.h>

#include "spec/errors.h"
#include "tiers/wasm/interpreters.h"

namespace belljar::wasm {
namespace {

SandboxSpec module_spec() {
  return {.tier = "wasm", .script = "some/tool.wasm", .script_arguments = {"-x", ""}};
}

TEST(PlanRun, HandsOverTmpAndWhatIsMounted) {
  SandboxSpec spec = module_spec();
  spec.mounts = {{"/usr", "/data", MountAccess::read_only},
                 {"/etc/passwd", "/files/one", MountAccess::read_only},
                 {"/etc/group", "/files/two", MountAccess::read_only}};
  spec.collect = {{"/out/*.txt", "here"}, {"/tmp/x", "there"}};
  const auto job = plan_run(spec);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->folders, (std::vector<std::string>{"/tmp", "/out", "/data", "/files"}));
  EXPECT_EQ(job->arguments, (std::vector<std::string>{"tool.wasm", "-x", ""}));
  EXPECT_FALSE(job->fuel);
}

TEST(PlanRun, HandsOverTheEnvironmentThatProgramsHave) {
  SandboxSpec spec = module_spec();
  spec.environment = {{"HOME", "/data"}, {"MODE", ""}};
  const auto job = plan_run(spec);
  ASSERT_TRUE(job);
  std::vector<std::string> names;
  for (const std::string& variable : job->variables) names.push_back(variable.substr(0, variable.find('=')));
  EXPECT_EQ(names, (std::vector<std::string>{"PATH", "HOME", "LANG", "TZ", "MODE"}));
  EXPECT_EQ(job->variables[1], "HOME=/data");
}

TEST(PlanRun, NeverHandsOverTheRoot) {
  SandboxSpec spec = module_spec();
  spec.mounts = {{"/etc/passwd", "/one", MountAccess::read_only}};
  EXPECT_EQ(plan_run(spec).error().code, ErrorCode::bad_mount);
}

TEST(PlanRun, CountsFuelWhereItIsLimited) {
  SandboxSpec spec = module_spec();
  spec.limits.fuel = {1000, LimitSource::named};
  EXPECT_EQ(plan_run(spec)->fuel, 1000U);
}

TEST(CheckSpec, RefusesByName) {
  EXPECT_TRUE(check_spec(module_spec()));
  const auto refusal = [](auto change) {
    SandboxSpec spec = module_spec();
    change(spec);
    const auto checked = check_spec(spec);
    return checked ? "" : checked.error().message.substr(0, checked.error().message.find(':'));
  };
  EXPECT_EQ(refusal([](SandboxSpec& spec) { spec.allow.emplace_back(); }), "--allow");
  EXPECT_EQ(refusal([](SandboxSpec& spec) { spec.workspace = "."; }), "--workspace");
  EXPECT_EQ(refusal([](SandboxSpec& spec) { spec.image = "x"; }), "--image");
  EXPECT_EQ(refusal([](SandboxSpec& spec) { spec.venv = "x"; }), "--venv");
  EXPECT_EQ(refusal([](SandboxSpec& spec) { spec.hidden_paths = {"/x"}; }), "--hide");
  EXPECT_EQ(refusal([](SandboxSpec& spec) { spec.workdir = "/x"; }), "--workdir");
  EXPECT_EQ(refusal([](SandboxSpec& spec) { spec.terminal.emplace(); }), "--tty");
  EXPECT_EQ(refusal([](SandboxSpec& spec) { spec.traces_calls = true; }), "--strace");
  EXPECT_EQ(refusal([](SandboxSpec& spec) { spec.command = {"true"}; }), "-- COMMAND");
  EXPECT_EQ(refusal([](SandboxSpec& spec) { spec.limits.net_size.source = LimitSource::named; }), "--net-size");
}

TEST(Interpreters, AreFoundByTheScriptsName) {
  ASSERT_NE(find_interpreter("a/b.js"), nullptr);
  EXPECT_EQ(find_interpreter("a/b.js")->name, "quickjs");
  EXPECT_EQ(find_interpreter("a/b.wasm"), nullptr);
  EXPECT_EQ(find_interpreter("js"), nullptr);
}

}  // namespace
}  // namespace belljar::wasm
