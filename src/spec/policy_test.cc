#include "spec/policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "spec/errors.h"
#include "spec/names.h"

namespace belljar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const char* lookup(const char* name) {
  return std::string_view(name) == "TOKEN" ? "secret" : nullptr;
}

RunPolicy from_text(std::string_view text) {
  RunPolicy policy;
  const auto applied = apply_policy_text(policy, text, "p.toml");
  EXPECT_TRUE(applied) << text << "\n" << (applied ? "" : applied.error().message);
  return policy;
}

SandboxSpec spec_of(std::string_view text) {
  const auto spec = from_text(text).resolve(lookup);
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
  return spec.value_or(SandboxSpec{});
}

std::string refusal(std::string_view text) {
  RunPolicy policy;
  const auto applied = apply_policy_text(policy, text, "p.toml");
  EXPECT_FALSE(applied) << text;
  if (applied) return "";
  EXPECT_EQ(applied.error().code, ErrorCode::bad_policy);
  EXPECT_EQ(applied.error().message.find('\n'), std::string::npos);
  return applied.error().message;
}

constexpr std::string_view kEverything = R"(
tier = "container"
workdir = "/data//x/"
venv = ".venv"
hide = ["/usr/local/secrets", "/usr/share/x"]
collect = ["/out:./results", "/tmp//*.png:/srv/a:b"]
collect_existing = "replace"
workspace = "./repo"
allow = ["example.org", { host = "*.corp.test", ports = [443], methods = ["GET"], paths = ["/a/*"], allow_private = true }]
require = ["memory", "landlock"]
accept_weaker = ["cpus"]
on_output_limit = "kill"
stdin = "none"
pass_environment = ["TOKEN"]

[limits]
memory = "1.5G"
cpus = 0.5
timeout = 90
tasks = 64
tmp_size = "10M"
tmp_inodes = 1000
open_files = 128
output = 0

[environment]
NAME = "v \" \\ \u001b é"
EMPTY = ""

[[mounts]]
source = "./data"
target = "/data"

[[mounts]]
source = "/srv/out: \"x\""
target = "/data/out:1"
access = "rw"
)";

TEST(PolicyFile, SetsEverything) {
  const SandboxSpec spec = spec_of(kEverything);
  EXPECT_EQ(spec.tier, "container");
  EXPECT_EQ(spec.workdir, "/data/x");
  EXPECT_EQ(spec.venv, ".venv");
  EXPECT_THAT(spec.hidden_paths, ElementsAre("/usr/local/secrets", "/usr/share/x"));
  EXPECT_THAT(spec.required, ElementsAre("memory", "landlock"));
  EXPECT_THAT(spec.weaker_accepted, ElementsAre("cpus"));
  EXPECT_THAT(spec.collect, ElementsAre(CollectSpec{"/out", "./results"}, CollectSpec{"/tmp/*.png", "/srv/a:b"}));
  EXPECT_EQ(spec.collect_existing, ExistingFiles::replace);
  EXPECT_EQ(spec.workspace, "./repo");
  EXPECT_EQ(spec.output_policy, OutputPolicy::kill);
  EXPECT_EQ(spec.stdin_source, StdinSource::none);
  EXPECT_THAT(spec.environment,
              ElementsAre(EnvironmentVariable{"EMPTY", ""}, EnvironmentVariable{"NAME", "v \" \\ \x1b \xC3\xA9"},
                          EnvironmentVariable{"TOKEN", "secret"}));
  EXPECT_THAT(spec.mounts, ElementsAre(MountSpec{"./data", "/data", MountAccess::read_only},
                                       MountSpec{"/srv/out: \"x\"", "/data/out:1", MountAccess::read_write}));
  EXPECT_EQ(spec.limits.memory, (Limit{1536 * kMiB, LimitSource::named}));
  EXPECT_EQ(spec.limits.cpus.value, 500u);
  EXPECT_EQ(spec.limits.timeout.value, 90'000u);
  EXPECT_EQ(spec.limits.tasks.value, 64u);
  EXPECT_EQ(spec.limits.tmp_size.value, 10 * kMiB);
  EXPECT_EQ(spec.limits.tmp_inodes.value, 1000u);
  EXPECT_EQ(spec.limits.open_files.value, 128u);
  EXPECT_EQ(spec.limits.output, (Limit{0, LimitSource::named}));
}

TEST(PolicyFile, AnEmptyOneChangesNothing) {
  EXPECT_EQ(spec_of(""), SandboxSpec{});
  EXPECT_EQ(spec_of("# only a comment\n"), SandboxSpec{});
  EXPECT_EQ(spec_of("\xEF\xBB\xBF"), SandboxSpec{});
  EXPECT_EQ(spec_of("[limits]\n[environment]\n"), SandboxSpec{});
  EXPECT_EQ(spec_of("mounts = []\nhide = []"), SandboxSpec{});
}

TEST(PolicyFile, ShownAndReadAgainIsTheSame) {
  for (const std::string_view text :
       {kEverything, std::string_view(""), std::string_view("[limits]\noutput = 7\ntimeout = \"1ms\"")}) {
    const RunPolicy policy = from_text(text);
    const std::string shown = *policy_to_toml(policy);
    EXPECT_EQ(spec_of(shown), *policy.resolve(lookup)) << shown;
    EXPECT_EQ(*policy_to_toml(from_text(shown)), shown);
  }
}

TEST(PolicyFile, ShowsNoPassedSecret) {
  const std::string shown = *policy_to_toml(from_text(kEverything));
  EXPECT_THAT(shown, HasSubstr("pass_environment = [\"TOKEN\"]"));
  EXPECT_EQ(shown.find("secret\""), std::string::npos);
}

TEST(PolicyFile, DefaultsStayDefaults) {
  const std::string shown = *policy_to_toml(RunPolicy{});
  EXPECT_THAT(shown, HasSubstr("# memory = \"256M\"  # the default"));
  EXPECT_EQ(spec_of(shown).limits.memory.source, LimitSource::preset);
}

TEST(PolicyFile, CanNotShowWhatIsNotUtf8) {
  RunPolicy policy;
  ASSERT_TRUE(policy.add_mount({"/a\xFF", "/b"}, "--mount"));
  EXPECT_THAT(policy_to_toml(policy).error().message, HasSubstr("\"/a\\xff\" is not UTF-8"));
  RunPolicy variable;
  ASSERT_TRUE(variable.add_environment_text("A=s3cret\xFF", "-e"));
  const std::string message = policy_to_toml(variable).error().message;
  EXPECT_THAT(message, HasSubstr("value of A"));
  EXPECT_EQ(message.find("s3cret"), std::string::npos);
}

TEST(PolicyFile, SaysWhereAndWhatWouldBeRight) {
  EXPECT_EQ(refusal("\n\nmemroy = 1"),
            "p.toml:3: memroy: there is no such key; known: tier, image, workdir, venv, hide, require, "
            "accept_weaker, "
            "on_output_limit, stdin, workspace, collect, collect_existing, pass_environment, allow, secrets, limits, "
            "environment and mounts");
  EXPECT_EQ(refusal("[limits]\nmemroy = 1"), "p.toml:2: limits.memroy: there is no such key; did you mean memory?");
  EXPECT_EQ(refusal("mount = []"), "p.toml:1: mount: there is no such key; did you mean mounts?");
  EXPECT_EQ(refusal("[limits]\nmemory = true"),
            "p.toml:2: limits.memory: must be a string such as \"256M\" or a number, not a boolean");
  EXPECT_EQ(refusal("[limits]\n\nmemory = \"0\""),
            "p.toml:3: limits.memory: \"0\" is out of range; it must be from 1M to 64T, such as 256M");
  EXPECT_EQ(refusal("limits = 3"), "p.toml:1: limits: must be a table: write [limits], not an integer");
  EXPECT_EQ(refusal("mounts = \"a:b\""), "p.toml:1: mounts: must be tables: write [[mounts]], not a string");
  EXPECT_EQ(refusal("hide = [\n\"/a\",\n1]"), "p.toml:3: hide: must be an array of strings, not one with an integer");
  EXPECT_EQ(refusal("[[mounts]]\nsource = \"a\""), "p.toml:1: mounts: this mount has no target");
  EXPECT_EQ(refusal("stdin = \"yes\""), "p.toml:1: stdin: \"yes\" is not known; write inherit or none");
  EXPECT_EQ(refusal("pass_environment = [\"A\"]\nenvironment.A = \"1\""),
            "p.toml:1: pass_environment: A is in [environment] too");
}

TEST(PolicyFile, RefusesBadValues) {
  for (const char* text :
       {"[limits]\nmemory = -1",
        "[limits]\nmemory = nan",
        "[limits]\nmemory = inf",
        "[limits]\nmemory = 1e99",
        "[limits]\nmemory = \"1e99G\"",
        "[limits]\nmemory = \"\"",
        "[limits]\nmemory = 1979-05-27",
        "[limits]\nmemory = [1]",
        "[limits]\ntasks = 1.5",
        "[limits]\ncpus = 0",
        "[limits.memory]\nx = 1",
        "tier = \"vm\"",
        "tier = 1",
        "workdir = \"x\"",
        "workdir = \"\"",
        "venv = \"\"",
        "venv = \"a\\u0000\"",
        "hide = \"/x\"",
        "hide = [\"x\"]",
        "hide = [\"/\"]",
        "hide = [[\"/x\"]]",
        "require = [\"everything\"]",
        "on_output_limit = \"stop\"",
        "stdin = true",
        "collect = \"/out:x\"",
        "collect = [\"/out\"]",
        "collect = [\"out:x\"]",
        "collect_existing = \"yes\"",
        "pass_environment = [\"A=B\"]",
        "pass_environment = [\"\"]",
        "[environment]\nA = 1",
        "[environment]\n\"A B\" = \"\"",
        "[environment]\nA = \"\\u0000\"",
        "[environment]\npass = [\"A\"]",
        "[[mounts]]",
        "[[mounts]]\nsource = \"a\"\ntarget = \"b\"",
        "[[mounts]]\nsource = \"\"\ntarget = \"/b\"",
        "[[mounts]]\nsource = \"a\"\ntarget = \"/proc\"",
        "[[mounts]]\nsource = \"a\"\ntarget = \"/b\"\naccess = \"rx\"",
        "[[mounts]]\nsource = \"a\"\ntarget = \"/b\"\nmode = \"rw\"",
        "[[mounts]]\nsource = 1\ntarget = \"/b\"",
        "mounts = [1]",
        "mounts = {source = \"a\", target = \"/b\"}",
        "[[mounts]]\nsource = \"a\"\ntarget = \"/b\"\n[[mounts]]\nsource = \"c\"\ntarget = \"/b/\""}) {
    EXPECT_THAT(refusal(text), StartsWith("p.toml:")) << text;
  }
}

TEST(PolicyFile, RefusesWhatIsNotToml) {
  for (const char* text :
       {"x", "= 1", "a = ", "[limits", "[limits]]", "tier = \"container\"\ntier = \"container\"", "[limits]\n[limits]",
        "[limits]\nmemory = 1\nmemory = 2", "a = 'x\n'", "tier = \"\xFF\"", "a = \"\"\"", "a = 01", "\xFE\xFF"}) {
    EXPECT_THAT(refusal(text), HasSubstr("p.toml:")) << text;
  }
  EXPECT_THAT(refusal(std::string_view("tier = \"\0\"", 10)), HasSubstr("p.toml:1"));
  EXPECT_THAT(refusal("tier = \"container\"\ntier = \"container\""), StartsWith("p.toml:2: this is not TOML: "));
  EXPECT_EQ(refusal("a = \x1b]0;x").find('\x1b'), std::string::npos);
  EXPECT_EQ(refusal("\n[.limits]"), "p.toml:2: [ must be followed by the name of a table, such as [limits]");
  EXPECT_EQ(refusal("[environment]\ngr\u00fc\u00df = 'x'"),
            "p.toml:2: a character beyond ASCII stands outside strings and comments; put keys and values in quotes");
}

TEST(PolicyFile, HoldsItsBounds) {
  EXPECT_THAT(refusal(std::string(kPolicyBytesMax + 1, '#')), HasSubstr("at most 262144 bytes"));
  std::string dots = "a";
  while (dots.size() < 200'000) dots += ".a";
  EXPECT_THAT(refusal(dots + " = 1"), HasSubstr("p.toml:1: a key has too many dots"));
  EXPECT_THAT(refusal("# .......................\nx = 'y'\n[" + dots + "]"),
              HasSubstr("p.toml:3: a key has too many dots"));
  EXPECT_THAT(refusal("[\"a\"" + dots.substr(1) + "]"), HasSubstr("too many dots"));
  refusal("a = " + std::string(100'000, '['));
  std::string tables = "1";
  for (int i = 0; i < 10'000; ++i) tables = "{a=" + tables + "}";
  refusal("a = " + tables);
  // Dots inside texts are no key.
  EXPECT_EQ(spec_of("environment.A = \"....................\" # ....................\n").environment[0].value.size(),
            20u);
  EXPECT_EQ(spec_of("environment.A = '''\n.....................\\'''\n").environment[0].value.size(), 22u);
  EXPECT_EQ(spec_of("environment.A = \"\"\"\n\\\".....................\\\\\"\"\"\n").environment[0].value.size(), 23u);
}

TEST(PolicyFile, RefusesNetworkRulesByName) {
  for (const char* text : {"network = true", "[network]\nallow = []", "egress = {}"}) {
    EXPECT_THAT(refusal(text), HasSubstr("there is no such network rule; what a program can reach is named by allow"));
  }
}

TEST(PolicyFile, NamesWhatCanBeReached) {
  const SandboxSpec spec = spec_of(
      "allow = [\"example.org\", \"db.test:5432\", \"example.org\",\n"
      "  { host = \"api.example.org\", ports = [443, 80], methods = [\"GET\"], paths = [\"/v1/*\"] },\n"
      "  { host = \"*.corp.test\", allow_private = true }]\n");
  ASSERT_EQ(spec.allow.size(), 4U);
  EXPECT_EQ(format_egress_rule(spec.allow[1]), "db.test:5432");
  EXPECT_THAT(spec.allow[2].methods, ElementsAre("GET"));
  EXPECT_THAT(spec.allow[2].ports, ElementsAre(80, 443));
  EXPECT_TRUE(spec.allow[3].allow_private && spec.allow[3].is_wildcard);
  EXPECT_EQ(spec_of("[[allow]]\nhost = \"example.org\"\n").allow.size(), 1U);
}

TEST(PolicyFile, AllowsNothingByAnEmptyList) {
  EXPECT_TRUE(spec_of("allow = []").allow.empty());
  EXPECT_TRUE(spec_of("# allow = [\"example.org\"]\n").allow.empty());
}

TEST(PolicyFile, RefusesWrongRules) {
  EXPECT_THAT(refusal("allow = \"example.org\""), HasSubstr("p.toml:1: allow: must be an array of hosts and rules"));
  EXPECT_THAT(refusal("allow = [1]"), HasSubstr("a host or a table with a host"));
  EXPECT_THAT(refusal("allow = [\"\"]"), HasSubstr("the host is empty"));
  EXPECT_THAT(refusal("allow = [\"*\"]"), HasSubstr("everything can't be allowed"));
  EXPECT_THAT(refusal("allow = [{}]"), HasSubstr("this rule has no host"));
  EXPECT_THAT(refusal("allow = [{host = \"a.test\", port = 80}]"), HasSubstr("did you mean ports?"));
  EXPECT_THAT(refusal("allow = [{host = \"a.test\", ports = []}]"), HasSubstr("the list of ports is empty"));
  EXPECT_THAT(refusal("allow = [{host = \"a.test\", ports = [0]}]"), HasSubstr("is not a port"));
  EXPECT_THAT(refusal("allow = [{host = \"a.test\", ports = 80}]"), HasSubstr("an array of numbers"));
  EXPECT_THAT(refusal("allow = [{host = \"a.test\", methods = []}]"), HasSubstr("the list is empty"));
  EXPECT_THAT(refusal("allow = [{host = \"a.test\", methods = [\"get\"]}]"), HasSubstr("is not a method"));
  EXPECT_THAT(refusal("allow = [{host = \"a.test\", allow_private = 1}]"), HasSubstr("true or false"));
  EXPECT_THAT(refusal("allow_private = true"), HasSubstr("there is no such key"));
}

TEST(PolicyFile, ThatCanNotBeRead) {
  RunPolicy policy;
  EXPECT_EQ(apply_policy_file(policy, "/nonexistent/p.toml").error().message,
            "/nonexistent/p.toml: the policy file can't be read: No such file or directory");
  EXPECT_THAT(apply_policy_file(policy, "/").error().message, HasSubstr("Is a directory"));
  EXPECT_THAT(apply_policy_file(policy, "/dev/zero").error().message,
              HasSubstr("a device; a policy must be a regular file"));
}

TEST(Policy, ALaterLayerWins) {
  RunPolicy policy = from_text(
      "pass_environment = [\"TOKEN\"]\nhide = [\"/a\"]\n[limits]\nmemory = \"1G\"\ntasks = 9\n[environment]\nA = "
      "\"1\"\n"
      "[[mounts]]\nsource = \"a\"\ntarget = \"/x\"\n[[mounts]]\nsource = \"b\"\ntarget = \"/y\"");
  policy.begin_layer();
  ASSERT_TRUE(policy.set_limit(limit_rows()[0], "2G", "--memory"));
  ASSERT_TRUE(policy.add_environment_text("A=2", "-e"));
  ASSERT_TRUE(policy.add_environment_text("TOKEN=mine", "-e"));
  ASSERT_TRUE(policy.add_hide("/a/", "--hide"));
  ASSERT_TRUE(policy.add_mount_text("c:/x:rw", "--mount"));
  const SandboxSpec spec = *policy.resolve(lookup);
  EXPECT_EQ(spec.limits.memory.value, 2 * kGiB);
  EXPECT_EQ(spec.limits.tasks.value, 9u);
  EXPECT_THAT(spec.environment, ElementsAre(EnvironmentVariable{"A", "2"}, EnvironmentVariable{"TOKEN", "mine"}));
  EXPECT_THAT(spec.hidden_paths, ElementsAre("/a"));
  EXPECT_THAT(spec.mounts,
              ElementsAre(MountSpec{"c", "/x", MountAccess::read_write}, MountSpec{"b", "/y", MountAccess::read_only}));
  EXPECT_THAT(policy.add_mount_text("d:/x", "--mount").error().message, HasSubstr("two mounts at \"/x\""));
  EXPECT_TRUE(policy.add_mount_text("d:/y", "--mount"));
}

TEST(Policy, ReadsMountsAsWrittenOnTheCommandLine) {
  const auto mount_of = [](std::string_view text) {
    RunPolicy policy;
    const auto added = policy.add_mount_text(text, "--mount");
    EXPECT_TRUE(added) << text;
    return added ? policy.spec().mounts[0] : MountSpec{};
  };
  EXPECT_EQ(mount_of("./a:/b"), (MountSpec{"./a", "/b", MountAccess::read_only}));
  EXPECT_EQ(mount_of("a:/b/:ro"), (MountSpec{"a", "/b", MountAccess::read_only}));
  EXPECT_EQ(mount_of("/a:b c:/d:rw"), (MountSpec{"/a:b c", "/d", MountAccess::read_write}));
  for (const char* text :
       {"", ":", "a", "./a:", ":/b", "a:b", "a:/b:xx", "a:/b:rw:ro", "a::ro", "a:/", "a:/dev", "a:/x/../y"}) {
    RunPolicy policy;
    const auto added = policy.add_mount_text(text, "--mount");
    ASSERT_FALSE(added) << text;
    EXPECT_THAT(added.error().message, StartsWith("--mount: "));
  }
}

TEST(Policy, ReadsWhatToCollect) {
  RunPolicy policy;
  for (const char* text : {"", ":", "/out", "/out:", ":x", "out:x", "/:x", "/*:x", "/o?t/a:x", "/proc/1:x",
                           "/dev/shm:x", "/sys:x", "/out/../tmp:x"}) {
    const auto added = policy.add_collect_text(text, "--collect");
    ASSERT_FALSE(added) << text;
    EXPECT_THAT(added.error().message, StartsWith("--collect: ")) << text;
  }
  ASSERT_TRUE(policy.add_collect_text("/out/:a", "--collect"));
  ASSERT_TRUE(policy.add_collect_text("/out:a", "--collect"));
  ASSERT_TRUE(policy.add_collect_text("/out:b:c", "--collect"));
  EXPECT_THAT(policy.spec().collect, ElementsAre(CollectSpec{"/out", "a"}, CollectSpec{"/out", "b:c"}));
}

TEST(Policy, WantsPassedVariablesToBeSet) {
  RunPolicy policy;
  ASSERT_TRUE(policy.add_environment_text("NOT_SET", "-e"));
  EXPECT_EQ(policy.resolve(lookup).error().message,
            "-e: NOT_SET is not set in your environment; give it a value with -e NOT_SET=VALUE");
  for (const char* text : {"", "=", "=x", "A B=1", "\xFF=1"})
    EXPECT_FALSE(policy.add_environment_text(text, "-e")) << text;
  EXPECT_TRUE(policy.add_environment_text("A=b=c", "-e"));
}

TEST(Policy, RequiresAll) {
  RunPolicy policy;
  ASSERT_TRUE(policy.add_require("memory", "--require"));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(policy.add_require("all", "--require"));
  EXPECT_EQ(policy.spec().required, (std::vector<std::string>{"memory", "all"}));
}

TEST(Policy, ALimitThatIsOffHoldsNothing) {
  for (const LimitRow& row : limit_rows()) {
    SandboxSpec spec;
    spec.command = {"true"};
    spec.required = {std::string(row.name), "all"};
    const auto checked = validate(spec);
    EXPECT_EQ(checked.has_value(), !can_be_off(row)) << row.name;
    if (checked) continue;
    EXPECT_EQ(checked.error().message, fmt::format("require: the limit {} is off, so there is nothing to hold; set it "
                                                   "with --{}",
                                                   row.name, row.flag));
    (spec.limits.*row.field).value = row.least;
    EXPECT_TRUE(validate(spec)) << row.name;
  }
}

TEST(Policy, LimitsThatAreOff) {
  RunPolicy policy;
  EXPECT_THAT(*policy_to_toml(policy), HasSubstr("# cpu_time = \"off\"  # the default\n"));
  for (const LimitRow& row : limit_rows()) {
    const auto set = policy.set_limit(row, "off", "here");
    EXPECT_EQ(set.has_value(), can_be_off(row)) << row.name;
    if (set) {
      EXPECT_EQ(policy.spec().limits.*row.field, (Limit{row.most, LimitSource::named})) << row.name;
    } else {
      EXPECT_THAT(set.error().message, HasSubstr("this limit is never off"));
    }
  }
  EXPECT_THAT(*policy_to_toml(policy), HasSubstr("\nread_rate = \"off\"\n"));
}

}  // namespace
}  // namespace belljar
