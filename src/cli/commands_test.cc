#include "cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cli/execute.h"

namespace belljar {
namespace {

std::string last_call;

}  // namespace

// In place of execute.cc.
int execute_run(const SandboxSpec& spec, const RunOptions&) {
  last_call = "run " + spec.script;
  return 7;
}
int run_doctor(bool json) {
  last_call = json ? "doctor json" : "doctor";
  return 0;
}
int run_gc() {
  last_call = "gc";
  return 0;
}
int run_version(bool json) {
  last_call = json ? "version json" : "version";
  return 0;
}
int execute_changes(const ChangesRequest&) {
  return 0;
}

int execute_image(const ImageRequest& request) {
  last_call = "image " + request.name;
  return 0;
}
int execute_runs(const RunsRequest& request) {
  last_call = "runs " + request.profile;
  return 0;
}
int execute_calibrate(const CalibrateRequest& request) {
  last_call = "calibrate " + request.profile + " " + std::to_string(request.percentile_hundredths);
  return 0;
}
int execute_show(const ShowRequest& request) {
  last_call = "show " + std::to_string(request.run);
  return 0;
}

namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Said {
  int status;
  std::string out;
  std::string err;
  std::string call;
};

Said say(std::vector<std::string> texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  last_call.clear();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = command_line(pointers);
  std::string out = testing::internal::GetCapturedStdout();
  return {status, std::move(out), testing::internal::GetCapturedStderr(), last_call};
}

TEST(Commands, CallTheirBodies) {
  EXPECT_EQ(say({"run", "a.py"}).call, "run a.py");
  EXPECT_EQ(say({"run", "a.py"}).status, 7);
  EXPECT_EQ(say({"doctor"}).call, "doctor");
  EXPECT_EQ(say({"doctor", "--json"}).call, "doctor json");
  EXPECT_EQ(say({"gc"}).call, "gc");
  EXPECT_EQ(say({"runs", "--profile", "p"}).call, "runs p");
  EXPECT_EQ(say({"show", "12"}).call, "show 12");
  EXPECT_EQ(say({"calibrate", "--profile", "p"}).call, "calibrate p 9900");
  EXPECT_EQ(say({"calibrate", "--profile", "p", "--percentile", "99.5"}).call, "calibrate p 9950");
  EXPECT_EQ(say({"show", "12", "--json"}).call, "show 12");
}

TEST(Commands, VersionAndHelp) {
  for (const char* word : {"version", "--version", "-V"}) EXPECT_EQ(say({word}).call, "version");
  for (const char* word : {"version", "--version", "-V"}) EXPECT_EQ(say({word, "--json"}).call, "version json");
  for (const char* word : {"help", "--help", "-h"}) EXPECT_EQ(say({word}).out, main_help());
  EXPECT_THAT(say({"help", "run"}).out, HasSubstr("--memory SIZE"));
  EXPECT_THAT(say({"help", "policy"}).out, HasSubstr("policy show"));
  EXPECT_THAT(say({"help", "doctor"}).out, HasSubstr("belljar doctor"));
  EXPECT_THAT(say({"help", "gc"}).out, HasSubstr("belljar gc"));
  EXPECT_THAT(say({"help", "version"}).out, HasSubstr("belljar version"));
  for (const char* command : {"run", "policy", "runs", "show", "calibrate", "doctor", "gc", "version"}) {
    EXPECT_EQ(say({command, "--help"}).out, say({"help", command}).out);
    EXPECT_EQ(say({command, "--help"}).status, 0);
    EXPECT_THAT(say({command, "--help"}).call, IsEmpty());
  }
}

TEST(Commands, HelpFitsAScreen) {
  const std::string help = main_help();
  std::size_t lines = 0;
  for (std::size_t start = 0; start < help.size(); start = help.find('\n', start) + 1) {
    ++lines;
    EXPECT_LE(help.find('\n', start) - start, 96u) << help.substr(start, 100);
  }
  EXPECT_GE(lines, 20u);
  EXPECT_LE(lines, 30u);
  EXPECT_THAT(help, HasSubstr("Examples:"));
}

TEST(Commands, RefuseWhatTheyDoNotKnow) {
  const auto refused = [](std::vector<std::string> texts) {
    const Said said = say(std::move(texts));
    EXPECT_EQ(said.status, 125);
    EXPECT_THAT(said.out, IsEmpty());
    EXPECT_THAT(said.call, IsEmpty());
    return said.err;
  };
  EXPECT_EQ(refused({}), main_help());
  EXPECT_EQ(refused({"rnu", "x"}), "belljar: unknown command rnu; did you mean run?\n");
  EXPECT_EQ(refused({"x.py"}), "belljar: unknown command x.py; to run a script: belljar run x.py\n");
  EXPECT_EQ(refused({"banana"}), "belljar: unknown command banana; belljar --help lists the commands\n");
  EXPECT_EQ(refused({""}), "belljar: unknown command ; belljar --help lists the commands\n");
  EXPECT_EQ(refused({"--json"}),
            "belljar: unknown option --json; options stand after a command: belljar run --json ...\n");
  EXPECT_EQ(refused({"help", "banana"}), "belljar: unknown command banana; belljar --help lists the commands\n");
  EXPECT_EQ(refused({"doctor", "x"}), "belljar: doctor takes options only, not \"x\"\n");
  EXPECT_EQ(refused({"doctor", "--jsno"}), "belljar: unknown option --jsno; did you mean --json?\n");
  EXPECT_THAT(refused({"gc", "x"}), StartsWith("belljar: gc takes no arguments"));
  EXPECT_THAT(refused({"gc", "--all"}), StartsWith("belljar: unknown option --all"));
  EXPECT_THAT(refused({"runs", "3"}), HasSubstr("belljar show 3"));
  EXPECT_THAT(refused({"runs", "--status", "tiemout"}), HasSubstr("did you mean timeout?"));
  EXPECT_THAT(refused({"runs", "--profile", "a b"}), HasSubstr("not a profile's name"));
  EXPECT_THAT(refused({"runs", "--since", "soon"}), HasSubstr("not a length of time"));
  EXPECT_THAT(refused({"show"}), HasSubstr("belljar show RUN"));
  EXPECT_THAT(refused({"show", "last"}), HasSubstr("not the number of a run"));
  EXPECT_THAT(refused({"show", "0"}), HasSubstr("not the number of a run"));
  EXPECT_THAT(refused({"calibrate"}), HasSubstr("--profile NAME"));
  EXPECT_THAT(refused({"calibrate", "p"}), HasSubstr("--profile"));
  EXPECT_THAT(refused({"calibrate", "--profile", "p", "--percentile", "100"}), HasSubstr("from 1 to 99.99"));
  EXPECT_THAT(refused({"calibrate", "--profile", "p", "--factor", "1"}), HasSubstr("from 1.1 to 1000"));
  EXPECT_THAT(refused({"calibrate", "--profile", "p", "--factor", "nan"}), HasSubstr("not a number"));
  EXPECT_THAT(refused({"calibrate", "--profile", "p", "--since", "0"}), HasSubstr("--since"));
  EXPECT_THAT(refused({"version", "x"}), StartsWith("belljar: version takes options only"));
}

}  // namespace
}  // namespace belljar
