#include "cli/changes_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/said.h"

namespace belljar {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Said say(std::vector<std::string> arguments) {
  return say_to(changes_command, std::move(arguments));
}

TEST(ChangesCommand, TakesSoundRequests) {
  EXPECT_EQ(say({"list"}).status, 0);
  EXPECT_EQ(say({"list", "--json"}).status, 0);
  EXPECT_EQ(say({"diff", "0123abcd"}).status, 0);
  EXPECT_EQ(say({"diff", "0123abcd", "src/", "./a"}).status, 0);
  EXPECT_EQ(say({"apply", "--json", "0123abcd", "src"}).status, 0);
  EXPECT_EQ(say({"apply", "0123abcd", "src", "--json"}).status, 0);
  EXPECT_EQ(say({"apply", "0123abcd", "--", "-x"}).status, 0) << "a file may be called so";
  EXPECT_EQ(say({"discard", "0123abcd"}).status, 0);
}

TEST(ChangesCommand, RefusesOthersWithALine) {
  EXPECT_THAT(say({}).err, HasSubstr("list, diff, apply or discard"));
  EXPECT_THAT(say({"aply"}).err, HasSubstr("did you mean apply?"));
  EXPECT_THAT(say({"list", "x"}).err, HasSubstr("takes no arguments"));
  EXPECT_THAT(say({"diff"}).err, HasSubstr("belljar changes diff ID"));
  EXPECT_THAT(say({"discard", "a", "b"}).err, HasSubstr("belljar changes discard ID"));
  EXPECT_THAT(say({"diff", "a", "/etc"}).err, HasSubstr("below the workspace"));
  EXPECT_THAT(say({"diff", "a", "x/../y"}).err, HasSubstr("can't have .. in it"));
  EXPECT_THAT(say({"diff", "a", "./"}).err, HasSubstr("leave the path out"));
  EXPECT_THAT(say({"diff", "--json", "a"}).err, HasSubstr("--json is for"));
  EXPECT_EQ(say({"list", "--nothing"}).status, 125);
}

TEST(ChangesCommand, Help) {
  const Said said = say({"--help"});
  EXPECT_EQ(said.status, 0);
  EXPECT_THAT(said.err, IsEmpty());
  EXPECT_THAT(said.out, HasSubstr("belljar changes apply ID [PATH...]"));
}

}  // namespace
}  // namespace belljar
