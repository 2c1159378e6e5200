#include "cli/run_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/fd.h"
#include "base/json.h"
#include "cli/options.h"
#include "spec/names.h"

namespace belljar {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
  std::optional<SandboxSpec> spec;  // set when the arguments were taken
  RunOptions options;
};

template <typename Function>
Ran captured(std::vector<std::string> texts, Function function) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  Ran ran;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ran.status = function(std::span<char* const>(pointers), ran);
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  return ran;
}

Ran run(std::vector<std::string> texts) {
  return captured(std::move(texts), [](std::span<char* const> arguments, Ran& ran) {
    return run_command(arguments, [&ran](const SandboxSpec& spec, const RunOptions& options) {
      ran.spec = spec;
      ran.options = options;
      return 42;
    });
  });
}

Ran policy(std::vector<std::string> texts) {
  return captured(std::move(texts), [](std::span<char* const> arguments, Ran&) { return policy_command(arguments); });
}

SandboxSpec spec_of(std::vector<std::string> texts) {
  const Ran ran = run(std::move(texts));
  EXPECT_EQ(ran.status, 42) << ran.err;
  EXPECT_THAT(ran.err, IsEmpty());
  return ran.spec.value_or(SandboxSpec{});
}

// The one line on stderr, without its beginning and end.
std::string refusal(std::vector<std::string> texts) {
  const Ran ran = run(std::move(texts));
  EXPECT_EQ(ran.status, 125);
  EXPECT_FALSE(ran.spec);
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_THAT(ran.err, StartsWith("belljar: "));
  EXPECT_EQ(ran.err.find('\n') + 1, ran.err.size()) << ran.err;
  return ran.err.substr(9, ran.err.size() - 10);
}

std::string policy_file() {
  return testing::TempDir() + "belljar_policy_" + std::to_string(::getpid()) + ".toml";
}

std::string file_with(const std::string& text) {
  const std::string path = policy_file();
  std::ofstream(path) << text;
  static const int kRemovedAtExit = std::atexit([] { ::unlink(policy_file().c_str()); });
  (void)kRemovedAtExit;
  return path;
}

TEST(Run, TakesAScriptAndLeavesItsArgumentsAlone) {
  const SandboxSpec spec = spec_of({"--tasks", "9", "a.py", "--memory", "0", "--", "-e", "--json"});
  EXPECT_EQ(spec.script, "a.py");
  EXPECT_THAT(spec.script_arguments, ElementsAre("--memory", "0", "--", "-e", "--json"));
  EXPECT_THAT(spec.command, IsEmpty());
  EXPECT_EQ(spec.limits.tasks, (Limit{9, LimitSource::named}));
  EXPECT_EQ(spec.limits.memory.source, LimitSource::preset);
}

TEST(Run, TakesACommand) {
  const SandboxSpec spec = spec_of({"--", "python3", "-c", "print()", "--json"});
  EXPECT_THAT(spec.command, ElementsAre("python3", "-c", "print()", "--json"));
  EXPECT_THAT(spec.script, IsEmpty());
}

TEST(Run, TakesEveryLimitByItsFlag) {
  for (const LimitRow& row : limit_rows()) {
    const SandboxSpec spec = spec_of({written_option(row.flag), format_limit(row.unit, row.most), "a.py"});
    EXPECT_EQ(spec.limits.*row.field, (Limit{row.most, LimitSource::named})) << row.name;
    for (const char* bad : {"-1", "1e99G", "nan", "inf", "", "1G garbage"}) {
      EXPECT_THAT(refusal({written_option(row.flag), bad, "a.py"}), StartsWith(written_option(row.flag) + ": ")) << bad;
    }
  }
  EXPECT_EQ(refusal({"--memory", "0", "a.py"}),
            "--memory: \"0\" is out of range; it must be from 1M to 64T, such as 256M");
}

TEST(Run, TakesEveryOtherFlag) {
  ::setenv("BELLJAR_TEST_VARIABLE", "from the caller", 1);
  const SandboxSpec spec = spec_of({"-e",
                                    "B=1=2",
                                    "-e",
                                    "BELLJAR_TEST_VARIABLE",
                                    "--mount",
                                    "./d:/data",
                                    "--mount=o:/out:rw",
                                    "--venv",
                                    ".venv",
                                    "--workdir",
                                    "/data",
                                    "--hide",
                                    "/usr/local/x",
                                    "--require",
                                    "memory",
                                    "--collect",
                                    "/out:./r",
                                    "--collect-overwrite",
                                    "--no-stdin",
                                    "--on-output-limit",
                                    "kill",
                                    "--isolation",
                                    "container",
                                    "a.py"});
  EXPECT_THAT(spec.environment, ElementsAre(EnvironmentVariable{"B", "1=2"},
                                            EnvironmentVariable{"BELLJAR_TEST_VARIABLE", "from the caller"}));
  EXPECT_THAT(spec.mounts, ElementsAre(MountSpec{"./d", "/data", MountAccess::read_only},
                                       MountSpec{"o", "/out", MountAccess::read_write}));
  EXPECT_EQ(spec.venv, ".venv");
  EXPECT_EQ(spec.workdir, "/data");
  EXPECT_THAT(spec.hidden_paths, ElementsAre("/usr/local/x"));
  EXPECT_THAT(spec.required, ElementsAre("memory"));
  EXPECT_THAT(spec.collect, ElementsAre(CollectSpec{"/out", "./r"}));
  EXPECT_EQ(spec.collect_existing, ExistingFiles::replace);
  EXPECT_EQ(spec.stdin_source, StdinSource::none);
  EXPECT_EQ(spec.output_policy, OutputPolicy::kill);
  EXPECT_EQ(spec.tier, "container");
}

TEST(Run, TakesOneValueOfWhatHasOne) {
  EXPECT_EQ(refusal({"--tasks", "9", "--tasks=8", "a.py"}),
            "--tasks is given twice, as \"9\" and \"8\"; it takes one value");
  for (const LimitRow& row : limit_rows()) {
    const std::string value = format_limit(row.unit, row.most);
    EXPECT_THAT(refusal({written_option(row.flag), value, written_option(row.flag), value, "a.py"}),
                StartsWith(written_option(row.flag) + " is given twice"))
        << row.name;
  }
  for (const char* const name : {"venv", "image", "workdir", "workspace", "on-output-limit", "isolation", "status-fd",
                                 "profile", "limits", "trust"}) {
    EXPECT_THAT(refusal({written_option(name), "x", written_option(name), "x", "a.py"}),
                StartsWith(written_option(name) + " is given twice"));
  }
}

TEST(Run, TakesManyValuesOfWhatIsAList) {
  const SandboxSpec spec = spec_of({"-eA=1",
                                    "-eA=2",
                                    "--mount",
                                    "a:/a",
                                    "--mount",
                                    "b:/b",
                                    "--allow",
                                    "a.example",
                                    "--allow",
                                    "b.example",
                                    "--secret",
                                    "K=file:k@a.example:X-Key: {}",
                                    "--secret",
                                    "L=file:l@b.example:X-Key: {}",
                                    "--collect",
                                    "/out:r",
                                    "--collect",
                                    "/tmp/x:r",
                                    "--hide",
                                    "/usr/a",
                                    "--hide",
                                    "/usr/b",
                                    "--require",
                                    "memory",
                                    "--require",
                                    "cpus",
                                    "--accept-weaker",
                                    "tasks",
                                    "--accept-weaker",
                                    "tmp_size",
                                    "a.py"});
  EXPECT_THAT(spec.environment, ElementsAre(EnvironmentVariable{"A", "2"}));
  EXPECT_EQ(spec.mounts.size() + spec.allow.size() + spec.secrets.size() + spec.collect.size(), 8u);
  EXPECT_EQ(spec.hidden_paths.size() + spec.required.size() + spec.weaker_accepted.size(), 6u);
}

TEST(Run, FlagsWinOverThePolicyFile) {
  const std::string file = file_with("[limits]\ntasks = 5\nmemory = \"2G\"\n[environment]\nA = \"file\"\n");
  const SandboxSpec spec = spec_of({"--tasks", "9", "-e", "A=flag", "--policy", file, "a.py"});
  EXPECT_EQ(spec.limits.tasks.value, 9u);
  EXPECT_EQ(spec.limits.memory.value, 2 * kGiB);
  EXPECT_THAT(spec.environment, ElementsAre(EnvironmentVariable{"A", "flag"}));
  EXPECT_THAT(refusal({"--policy", file_with("\nnope = 1"), "a.py"}), HasSubstr(".toml:2: nope: there is no such key"));
  EXPECT_THAT(refusal({"--policy", "/nonexistent", "a.py"}), HasSubstr("No such file"));
}

TEST(Run, RefusesInOneLine) {
  ::unsetenv("BELLJAR_NOT_SET");
  EXPECT_THAT(refusal({}), HasSubstr("nothing to run; write belljar run SCRIPT"));
  EXPECT_THAT(refusal({"--no-stdin=1", "a.py"}), HasSubstr("--no-stdin takes no value"));
  EXPECT_THAT(refusal({"--"}), HasSubstr("nothing to run"));
  EXPECT_THAT(refusal({""}), HasSubstr("name is empty"));
  EXPECT_THAT(refusal({"--", ""}), HasSubstr("name is empty"));
  EXPECT_EQ(refusal({"--memroy", "1G", "a.py"}), "unknown option --memroy; did you mean --memory?");
  EXPECT_EQ(refusal({"--network", "a.py"}),
            "--network: there is no such network rule; what a program can reach is named by allow: --allow HOST, or "
            "allow = [\"HOST\"] in a policy file");
  EXPECT_THAT(refusal({"--allow", "*", "a.py"}), HasSubstr("--allow: everything can't be allowed"));
  EXPECT_THAT(refusal({"--isolation", "vm", "a.py"}), HasSubstr("--isolation: this version has no tier \"vm\""));
  EXPECT_EQ(refusal({"-e", "BELLJAR_NOT_SET", "a.py"}),
            "-e: BELLJAR_NOT_SET is not set in your environment; give it a value with -e BELLJAR_NOT_SET=VALUE");
  EXPECT_THAT(refusal({"--mount", "a", "a.py"}), HasSubstr("write SRC:DST"));
  EXPECT_THAT(refusal({"--mount", "a:/x", "--mount", "b:/x", "a.py"}), HasSubstr("two mounts"));
  EXPECT_THAT(refusal({"--require", "seccomp", "a.py"}),
              HasSubstr("there is no wall or limit \"seccomp\"; known: files"));
  EXPECT_THAT(refusal({"--on-output-limit", "stop", "a.py"}), HasSubstr("write truncate or kill"));
  EXPECT_THAT(refusal({"--workdir", "x", "a.py"}), HasSubstr("absolute"));
}

TEST(Run, ChecksTheStatusDescriptor) {
  for (const char* bad : {"", "x", "-1", "3x", " 3", "99999999999999999999", "1.5"}) {
    EXPECT_THAT(refusal({"--status-fd", bad, "a.py"}), HasSubstr("is not a descriptor")) << bad;
  }
  EXPECT_THAT(refusal({"--status-fd", "987", "a.py"}), HasSubstr("is not open"));
  const Fd read_only(::open("/dev/null", O_RDONLY));
  EXPECT_THAT(refusal({"--status-fd", std::to_string(read_only.get()), "a.py"}), HasSubstr("not open for writing"));
  const Fd writable(::open("/dev/null", O_WRONLY));
  const Ran ran = run({"--status-fd", std::to_string(writable.get()), "--json", "a.py"});
  EXPECT_EQ(ran.options.status_fd, writable.get());
  EXPECT_TRUE(ran.options.json);
}

TEST(Run, RecordsARefusal) {
  Pipe pipe = *make_pipe();
  const Ran ran = run({"--nope", "--status-fd", std::to_string(pipe.write.get()), "--json", "a.py"});
  EXPECT_EQ(ran.status, 125);
  pipe.write.reset();
  const std::string from_pipe = *read_all(pipe.read.get(), 1 << 20);
  for (const std::string& text : {ran.out, from_pipe}) {
    EXPECT_THAT(text, EndsWith("\n"));
    const auto record = parse_json(text);
    ASSERT_TRUE(record) << text;
    EXPECT_EQ((*record)["status"], "denied");
    EXPECT_EQ((*record)["error"]["code"], "usage");
    EXPECT_EQ((*record)["error"]["message"], "unknown option --nope; --help lists the options");
    EXPECT_EQ((*record)["reason"], (*record)["error"]["message"]);
  }
  EXPECT_THAT(ran.out, HasSubstr("\"stdout\""));
  EXPECT_THAT(from_pipe, testing::Not(HasSubstr("\"stdout\"")));
}

TEST(Run, ShowsHelpFromTheTables) {
  const Ran ran = run({"--memory", "0", "--help"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.err, IsEmpty());
  for (const LimitRow& row : limit_rows()) EXPECT_THAT(ran.out, HasSubstr("--" + std::string(row.flag)));
  for (const PolicyFlag& flag : policy_flags()) EXPECT_THAT(ran.out, HasSubstr(written_option(flag.name)));
  for (const TierRow& tier : tier_rows()) EXPECT_THAT(ran.out, HasSubstr(std::string(tier.name) + ","));
  EXPECT_THAT(ran.out, HasSubstr("(default 256M)"));
}

TEST(PolicyShow, PrintsWhatParsesBackToTheSameSpec) {
  ::setenv("BELLJAR_TEST_VARIABLE", "s3cret", 1);
  const std::vector<std::string> flags = {"--memory",  "1.5G",         "--cpus",     "0.5",
                                          "-e",        "A=x\"\\\n",    "-e",         "BELLJAR_TEST_VARIABLE",
                                          "--mount",   "./d:/data:rw", "--hide",     "/usr/x",
                                          "--require", "all",          "--no-stdin", "--on-output-limit",
                                          "kill",      "--venv",       "v",          "--workdir",
                                          "/data"};
  std::vector<std::string> show = {"show"};
  show.insert(show.end(), flags.begin(), flags.end());
  const Ran shown = policy(show);
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, testing::Not(HasSubstr("s3cret")));
  std::vector<std::string> with_flags = flags;
  with_flags.push_back("a.py");
  EXPECT_EQ(spec_of({"--policy", file_with(shown.out), "a.py"}), spec_of(with_flags));
}

TEST(RunCommand, ValuesOfVariablesLeaveTheCommandLine) {
  std::vector<std::string> texts = {"-e", "TOKEN=secret", "-eOTHER=x=y", "--workdir", "/a=b", "--", "env", "A=kept"};
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  std::optional<SandboxSpec> spec;
  EXPECT_EQ(run_command(pointers, [&](const SandboxSpec& given, const RunOptions&) { return spec = given, 42; }), 42);
  EXPECT_THAT(texts, ElementsAre("-e", "TOKEN=******", "-eOTHER=***", "--workdir", "/a=b", "--", "env", "A=kept"));
  ASSERT_TRUE(spec);
  EXPECT_THAT(spec->environment,
              ElementsAre(EnvironmentVariable{"OTHER", "x=y"}, EnvironmentVariable{"TOKEN", "secret"}));
}

TEST(PolicyShow, RefusesInOneLine) {
  const auto refused = [](std::vector<std::string> texts) {
    const Ran ran = policy(std::move(texts));
    EXPECT_EQ(ran.status, 125);
    EXPECT_THAT(ran.out, IsEmpty());
    return ran.err;
  };
  EXPECT_EQ(refused({}), "belljar: policy needs a word after it: belljar policy show, or belljar policy check\n");
  EXPECT_EQ(refused({"shwo"}), "belljar: unknown command policy shwo; there are policy show and policy check\n");
  EXPECT_EQ(refused({"show", "a.py"}), "belljar: policy show takes options only, not \"a.py\"\n");
  EXPECT_EQ(refused({"show", "--json"}), "belljar: policy show does not take --json; it prints TOML\n");
  EXPECT_THAT(refused({"show", "--memory", "0"}), HasSubstr("out of range"));
  EXPECT_THAT(refused({"show", "--mount", "a\xFF:/b"}), HasSubstr("not UTF-8"));
}

TEST(PolicyCheck, TakesFilesAndOptionsInAnyOrder) {
  const std::string file = file_with("allow = [\"a.test\"]\n");
  const std::vector<std::vector<std::string>> orders = {{"check", "--url", "https://a.test/", file},
                                                        {"check", file, "--url", "https://a.test/"},
                                                        {"check", "--method=POST", file, "--url=https://a.test/"},
                                                        {"check", "--url", "https://a.test/", "--", file}};
  for (const std::vector<std::string>& order : orders) {
    const Ran ran = policy(order);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "allowed by rule 1 (a.test)\n");
  }
  EXPECT_EQ(policy({"check", file, "--url", "https://b.test/"}).status, 1);
  EXPECT_THAT(policy({"check", file, "--ulr", "https://b.test/"}).err, HasSubstr("did you mean --url?"));
}

TEST(WriteRecord, SaysWhenItCanNot) {
  const Fd full(::open("/dev/full", O_WRONLY));
  testing::internal::CaptureStderr();
  EXPECT_FALSE(write_record(Outcome{}, {.status_fd = full.get()}));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("can't be written: No space left on device"));
}

TEST(RunCommand, TakesWhatIsToBeRemembered) {
  EXPECT_EQ(run({"a.py"}).options.profile, "");
  const Ran ran = run({"--profile", "p", "--keep", "--limits", "auto:q", "a.py"});
  EXPECT_EQ(ran.options.profile, "p");
  EXPECT_TRUE(ran.options.keep);
  EXPECT_EQ(ran.options.limits_of, "q");
  EXPECT_THAT(run({"--keep", "a.py"}).err, HasSubstr("--profile NAME"));
  EXPECT_THAT(run({"--profile", "../p", "a.py"}).err, HasSubstr("not a profile's name"));
  EXPECT_THAT(run({"--limits", "p", "a.py"}).err, HasSubstr("auto:NAME"));
  EXPECT_THAT(run({"--limits", "auto:", "a.py"}).err, HasSubstr("not a profile's name"));
  for (const char* flag : {"--keep", "--profile=p", "--limits=auto:p"}) {
    EXPECT_THAT(policy({"show", flag}).err, HasSubstr("policy show does not take")) << flag;
  }
}

}  // namespace
}  // namespace belljar
