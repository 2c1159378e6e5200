#include "spec/sandbox_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/checks.h"
#include "spec/errors.h"
#include "spec/names.h"

namespace belljar {
namespace {

using testing::HasSubstr;

SandboxSpec good_spec() {
  SandboxSpec spec;
  spec.script = "a.py";
  return spec;
}

std::string refusal(const SandboxSpec& spec) {
  const auto result = validate(spec);
  EXPECT_FALSE(result);
  return result ? "" : result.error().message;
}

TEST(Validate, TakesTheDefaultsWithAProgram) {
  EXPECT_TRUE(validate(good_spec()));
  SandboxSpec command;
  command.command = {"true", ""};
  EXPECT_TRUE(validate(command));
}

TEST(Validate, WantsExactlyOneProgram) {
  EXPECT_THAT(refusal(SandboxSpec{}), HasSubstr("nothing to run"));
  SandboxSpec both = good_spec();
  both.command = {"true"};
  EXPECT_THAT(refusal(both), HasSubstr("only one"));
  SandboxSpec empty_name;
  empty_name.command = {""};
  EXPECT_THAT(refusal(empty_name), HasSubstr("name is empty"));
}

TEST(Validate, ChecksEveryLimit) {
  for (const LimitRow& row : limit_rows()) {
    SandboxSpec spec = good_spec();
    (spec.limits.*row.field).value = row.most + 1;
    EXPECT_THAT(refusal(spec), HasSubstr(std::string(row.name) + ": ")) << row.name;
    if (row.least == 0) continue;
    (spec.limits.*row.field).value = row.least - 1;
    EXPECT_THAT(refusal(spec), HasSubstr(std::string(row.name) + ": ")) << row.name;
  }
}

TEST(Validate, ChecksWhatToCollect) {
  SandboxSpec spec = good_spec();
  spec.collect = {{"/out", "x"}, {"/tmp/a:b/*", "/"}};
  EXPECT_TRUE(validate(spec));
  spec.collect.push_back({"/*", "x"});
  EXPECT_THAT(refusal(spec), HasSubstr("name the folder that holds the files"));
  spec.collect.back() = {"/out", ""};
  EXPECT_THAT(refusal(spec), HasSubstr("the folder on the host: the path is empty"));
}

TEST(Validate, RefusesUnknownNames) {
  SandboxSpec tier = good_spec();
  tier.tier = "vm";
  EXPECT_EQ(refusal(tier), "tier: this version has no tier \"vm\"; known: container, kernel and wasm");
  SandboxSpec wall = good_spec();
  wall.required = {"landlok"};
  EXPECT_EQ(refusal(wall), "require: there is no wall or limit \"landlok\"; did you mean landlock?");
  wall.required = {"landlock", "memory"};
  EXPECT_TRUE(validate(wall));
  SandboxSpec limit = good_spec();
  limit.weaker_accepted = {"landlock"};
  EXPECT_THAT(refusal(limit), HasSubstr("accept_weaker: there is no limit \"landlock\""));
  limit.weaker_accepted = {"memory"};
  EXPECT_TRUE(validate(limit));
}

TEST(Validate, RefusesPlacesThatCanNotBe) {
  for (const char* target :
       {"", "data", "./data", "/", "//", "/.", "/a/../b", "/..", "/proc", "/proc/1", "/dev/shm", "/sys/", "/./dev"}) {
    SandboxSpec spec = good_spec();
    spec.mounts = {{"/tmp", target}};
    refusal(spec);
  }
  for (const char* target : {"/data", "/process", "/devices/x", "/a..b", "/data/"}) {
    SandboxSpec spec = good_spec();
    spec.mounts = {{"/tmp", target}};
    EXPECT_TRUE(validate(spec)) << target;
  }
  SandboxSpec twice = good_spec();
  twice.mounts = {{"/a", "/data"}, {"/b", "//data/."}};
  EXPECT_THAT(refusal(twice), HasSubstr("two mounts"));
  SandboxSpec no_source = good_spec();
  no_source.mounts = {{"", "/data"}};
  refusal(no_source);
  SandboxSpec covered = good_spec();
  covered.workspace = "./repo";
  EXPECT_TRUE(validate(covered));
  covered.mounts = {{"/a", "/workspace"}};
  EXPECT_THAT(refusal(covered), HasSubstr("workspace's place"));
  SandboxSpec workdir = good_spec();
  workdir.workdir = "data";
  EXPECT_THAT(refusal(workdir), HasSubstr("absolute"));
  SandboxSpec hide = good_spec();
  hide.hidden_paths = {"usr/local"};
  EXPECT_THAT(refusal(hide), HasSubstr("absolute"));
}

TEST(Validate, RefusesNulBytesAndWhatTheKernelWouldNotTake) {
  const std::string nul("a\0b", 3);
  SandboxSpec script = good_spec();
  script.script = nul;
  refusal(script);
  SandboxSpec argument = good_spec();
  argument.script_arguments = {nul};
  refusal(argument);
  argument.script_arguments = {std::string(kArgumentBytesMax + 1, 'x')};
  refusal(argument);
  argument.script_arguments = {std::string(kArgumentBytesMax, 'x')};
  EXPECT_TRUE(validate(argument));
  SandboxSpec variable = good_spec();
  for (const char* name : {"", "A=B", "A B", "A\n", "\xC3\xA9"}) {
    variable.environment = {{name, "x"}};
    refusal(variable);
  }
  variable.environment = {{"A", nul}};
  refusal(variable);
  variable.environment = {{"A", std::string(kArgumentBytesMax - 1, 'x')}};
  refusal(variable);
  variable.environment = {{"A.b-C%%", "=\n\xFF"}};
  EXPECT_TRUE(validate(variable));
  SandboxSpec venv = good_spec();
  venv.venv = std::string(5000, 'x');
  refusal(venv);
}

TEST(Validate, NamesTheTierThatHasSecrets) {
  SandboxSpec spec = good_spec();
  spec.secrets = {*parse_secret_rule("K=env:K@a.test:X-Key: {}", "x")};
  for (const char* tier : {"kernel", "wasm"}) {
    spec.tier = tier;
    EXPECT_THAT(refusal(spec), AllOf(HasSubstr("--secret"), HasSubstr(tier), HasSubstr("use --isolation container")));
  }
  for (const char* tier : {"container", kAutoTier}) {
    spec.tier = tier;
    EXPECT_THAT(refusal(spec), HasSubstr("add --allow a.test"));
  }
  spec.allow = {*parse_egress_rule("a.test", "x")};
  EXPECT_TRUE(validate(spec));
}

TEST(NormalInsidePath, HasOneSpellingForEachPath) {
  EXPECT_EQ(*normal_inside_path("//a/./b///c/", "x"), "/a/b/c");
  EXPECT_EQ(*normal_inside_path("/", "x"), "/");
}

TEST(Names, FindsWhatWasMeant) {
  const std::vector<std::string_view> known = {"memory", "cpus", "timeout", "tmp_size", "tmp_inodes", "open_files"};
  EXPECT_EQ(nearest_name("memroy", known), "memory");
  EXPECT_EQ(nearest_name("--mem", known), "memory");
  EXPECT_EQ(nearest_name("tmp-size", known), "tmp_size");
  EXPECT_EQ(nearest_name("timeout_s", known), "timeout");
  EXPECT_EQ(nearest_name("cpu", known), "cpus");
  EXPECT_EQ(nearest_name("banana", known), "");
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(nearest_name("--", known), "");
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'm'), known), "");
  EXPECT_EQ(name_hint("banana", known), "known: memory, cpus, timeout, tmp_size, tmp_inodes and open_files");
}

TEST(ProfileName, IsAPlainWord) {
  for (const char* name : {"a", "data-analysis", "v1.2_x"}) EXPECT_TRUE(check_profile_name(name, "--profile")) << name;
  for (const std::string& name : {std::string(), std::string(".a"), std::string("-a"), std::string("a b"),
                                  std::string("a/b"), std::string("\x1b[m"), std::string(65, 'a')}) {
    const auto checked = check_profile_name(name, "--profile");
    ASSERT_FALSE(checked) << name;
    EXPECT_EQ(checked.error().code, ErrorCode::bad_value);
  }
}

}  // namespace
}  // namespace belljar
