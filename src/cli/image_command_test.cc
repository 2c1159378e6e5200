#include "cli/image_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/said.h"

namespace belljar {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Said say(std::vector<std::string> arguments) {
  return say_to(image_command, std::move(arguments));
}

TEST(ImageCommand, TakesSoundRequests) {
  EXPECT_EQ(say({"ls"}).status, 0);
  EXPECT_EQ(say({"ls", "--json"}).status, 0);
  EXPECT_EQ(say({"load", "python:3.11", "./a.tar"}).status, 0);
  EXPECT_EQ(say({"load", "--max-size", "1G", "--max-entries=5", "--timeout", "30s", "a", "b"}).status, 0);
  EXPECT_EQ(say({"gc"}).status, 0);
  EXPECT_EQ(say({"rm", "a"}).status, 0);
  EXPECT_EQ(say({"inspect", "a"}).status, 0);
  EXPECT_EQ(say({"inspect", "./a.tar"}).status, 0);
  EXPECT_EQ(say({"rm", "../x"}).status, 0);
}

TEST(ImageCommand, RefusesTheRestInOneLine) {
  const std::pair<std::vector<std::string>, const char*> kWrong[] = {
      {{}, "image needs a word"},
      {{"list"}, "unknown command image list"},
      {{"load", "a"}, "belljar image load NAME SOURCE"},
      {{"load", "a", "b", "c"}, "takes 2 arguments, not 3"},
      {{"ls", "a"}, "takes 0 arguments"},
      {{"rm"}, "takes 1 argument, not 0"},
      {{"rm", "a b"}, "can't be the name of an image"},
      {{"load", "../x", "c"}, "can't be the name of an image"},
      {{"load", "-x", "a", "b"}, "unknown option"},
      {{"load", "a/b", "c"}, "can't be the name of an image"},
      {{"load", "", "c"}, "can't be the name of an image"},
      {{"load", std::string(129, 'a'), "c"}, "can't be the name of an image"},
      {{"load", "a", ""}, "the path is empty"},
      {{"load", "--max-size", "0", "a", "b"}, "--max-size"},
      {{"load", "--timeout", "soon", "a", "b"}, "--timeout"},
      {{"ls", "--max-size", "1G"}, "for image load only"},
  };
  for (const auto& [arguments, words] : kWrong) {
    const Said said = say(arguments);
    EXPECT_EQ(said.status, 125) << words;
    EXPECT_THAT(said.err, HasSubstr(words));
    EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 1) << said.err;
    EXPECT_THAT(said.out, IsEmpty());
  }
}

TEST(ImageCommand, TellsMistakesInJsonToo) {
  EXPECT_THAT(say({"rm", "--json", "a b"}).out, HasSubstr("\"code\":\"bad_value\""));
}

TEST(ImageCommand, Helps) {
  EXPECT_EQ(say({"--help"}).status, 0);
  EXPECT_THAT(say({"load", "--help"}).out, HasSubstr("belljar image load NAME SOURCE"));
}

}  // namespace
}  // namespace belljar
