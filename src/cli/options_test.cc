#include "cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace belljar {
namespace {

using testing::HasSubstr;

constexpr Option kOptions[] = {
    {"memory", "SIZE", "bytes"},
    {"e", "NAME[=VALUE]", "variable", Times::any},
    {"json", "", "record"},
    {"mount", "SRC:DST", "a long text that has to go on in a second line, because it is long"}};

// The arguments as main() gets them.
class Arguments {
 public:
  explicit Arguments(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
  }
  std::span<char* const> span() const { return pointers_; }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

// "memory=1G json | a b": what was given, then the operands.
std::string read(std::vector<std::string> texts) {
  const Arguments arguments(std::move(texts));
  const ParsedOptions parsed = parse_options(kOptions, arguments.span());
  if (parsed.error) return parsed.error->message;
  std::string out;
  for (const GivenOption& given : parsed.given) {
    out += kOptions[given.option].name;
    if (!kOptions[given.option].argument.empty()) out.append("=").append(given.value);
    out += ' ';
  }
  out += parsed.after_dashes ? "--" : "|";
  for (const char* operand : parsed.operands) out.append(" ").append(operand);
  return out;
}

TEST(OptionsFirst, KeepsValuesWithTheirOptions) {
  const Arguments arguments({"a", "--memory", "1G", "b", "--json", "--", "c", "--json"});
  std::string out;
  for (const char* argument : options_first(kOptions, arguments.span())) out.append(argument).append(" ");
  EXPECT_EQ(out, "--memory 1G --json -- a b c --json ");
  const Arguments plain({"a", "-", "--memory=2"});
  out.clear();
  for (const char* argument : options_first(kOptions, plain.span())) out.append(argument).append(" ");
  EXPECT_EQ(out, "--memory=2 a - ");
}

TEST(Options, TakesValuesInEveryWriting) {
  EXPECT_EQ(read({"--memory", "1G", "--json", "-e", "A=b", "-eC=d", "x"}), "memory=1G json e=A=b e=C=d | x");
  EXPECT_EQ(read({"--memory=1G"}), "memory=1G |");
  EXPECT_EQ(read({"--memory="}), "memory= |");
  EXPECT_EQ(read({"--memory", "--json"}), "memory=--json |");
  EXPECT_EQ(read({}), "|");
}

TEST(Options, StopsAtTheFirstOperand) {
  EXPECT_EQ(read({"--json", "a.py", "--memory", "-x", "--"}), "json | a.py --memory -x --");
  EXPECT_EQ(read({"--", "--json", "--"}), "-- --json --");
  EXPECT_EQ(read({"-", "--json"}), "| - --json");
  EXPECT_EQ(read({"", "--json"}), "|  --json");
}

TEST(Options, SaysWhatWasMeant) {
  EXPECT_EQ(read({"--memroy", "1G"}), "unknown option --memroy; did you mean --memory?");
  EXPECT_EQ(read({"--memroy=1G"}), "unknown option --memroy; did you mean --memory?");
  EXPECT_EQ(read({"-memory"}), "unknown option -memory; did you mean --memory?");
  EXPECT_EQ(read({"--e", "A"}), "unknown option --e; --help lists the options");
  EXPECT_EQ(read({"--env", "A=1"}), "unknown option --env; did you mean -e?");
  EXPECT_EQ(read({"-v", "a:/b"}), "unknown option -v; did you mean --mount?");
  EXPECT_EQ(read({"--banana"}), "unknown option --banana; --help lists the options");
  EXPECT_EQ(read({"---"}), "unknown option ---; --help lists the options");
  EXPECT_EQ(read({"--=1"}), "unknown option --; --help lists the options");
  EXPECT_EQ(read({"--\x1b[2J\n"}), "unknown option --\\x1b[2J\\n; --help lists the options");
  EXPECT_EQ(read({"--network", "host"}),
            "--network: there is no such network rule; what a program can reach is named by allow: --allow HOST, or "
            "allow = [\"HOST\"] in a policy file");
}

TEST(Options, WantsAValueWhereOneBelongs) {
  EXPECT_EQ(read({"--memory"}), "--memory needs a value: --memory SIZE");
  EXPECT_EQ(read({"-e"}), "-e needs a value: -e NAME[=VALUE]");
  EXPECT_EQ(read({"--json=1"}), "--json takes no value");
}

TEST(Options, TakesOneValueWhereOneBelongs) {
  EXPECT_EQ(read({"--memory", "1G", "-eA=1", "--memory=2G"}),
            "--memory is given twice, as \"1G\" and \"2G\"; it takes one value");
  EXPECT_EQ(read({"--memory=1G", "--memory", "1G"}),
            "--memory is given twice, as \"1G\" and \"1G\"; it takes one value");
  EXPECT_EQ(read({"-eA=1", "-e", "A=1", "--json", "--json"}), "e=A=1 e=A=1 json json |");
}

TEST(Options, ReadsOnAfterAMistake) {
  const Arguments arguments({"--nope", "--json", "a.py", "--json"});
  const ParsedOptions parsed = parse_options(kOptions, arguments.span());
  ASSERT_TRUE(parsed.error);
  EXPECT_THAT(parsed.error->message, HasSubstr("--nope"));
  EXPECT_EQ(parsed.given.size(), 1u);
  EXPECT_EQ(parsed.operands.size(), 2u);
}

TEST(Options, HelpFitsEightyColumns) {
  const std::string help = options_help(kOptions);
  EXPECT_THAT(help, HasSubstr("  --memory SIZE             bytes\n"));
  for (std::size_t start = 0; start < help.size(); start = help.find('\n', start) + 1) {
    EXPECT_LE(help.find('\n', start) - start, 80u);
  }
}

}  // namespace
}  // namespace belljar
