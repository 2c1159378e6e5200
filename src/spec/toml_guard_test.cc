#include "spec/toml_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace belljar {
namespace {

using testing::HasSubstr;

// "LINE: what", or nothing.
std::string fault_of(std::string_view text) {
  const auto fault = find_toml_fault(text);
  return fault ? std::to_string(fault->line) + ": " + std::string(fault->what) : "";
}

TEST(TomlGuard, LetsThroughWhatTheLibraryCanRead) {
  for (const char* text : {
           "",
           "\xEF\xBB\xBF",
           "\xEF\xBB\xBF[limits]",
           "a.b.\"c d\" = 1",
           "[limits]\n[ environment ]\n[\"a\"]\n['a']\n[_]\n[-]\n[0.a]\n[[mounts]]\n\t[[ mounts ]]",
           "[",
           "[]",
           "[[",
           "[[]]",
           "[limits",
           "\r\n[a]\r\n",
           "a = [.5]\nb = [\n[.5],\n[\n.5\n]\n]\n[c]",  // no table's header
           "a = {b = [1]}\n[c]",
           "# \xC3\xA9 [.a\na = '\xC3\xA9 [.a' # \xC3\xA9\nb = \"\xC3\xA9\n",
           "a = '''\n[.\xC3\xA9'''\nb = \"\"\"\n[.\xC3\xA9 \"\" \\\" \\\\\"\"\"",
           "a = \"\"\"\\\n  x \xC3\xA9\\n\xC3\xA9\"\"\"",
           "a = '''\\\n\xC3\xA9'''",
           "a = \"\"\"x\"\"\"\"\nb = '\xC3\xA9'\nc = '''x'''''\nd = '\xC3\xA9'\n",
           "a = \"\"\nb = ''\nc = '\xC3\xA9'",
           "]\n}\n[a]",
           "a1 = [1,'\xC3\xA9', 2#\xC3\xA9\n]\n",
       }) {
    EXPECT_EQ(fault_of(text), "") << text;
  }
}

TEST(TomlGuard, RefusesATablesNameThatIsNone) {
  const std::string what = ": [ must be followed by the name of a table, such as [limits]";
  for (const char* text : {"[.a", "[.a]", "[[.a]]", "[ .a]", "[[ \t=]]", "[,", "[\n", "[#", "[+1]", "[{", "[ [a]]"}) {
    EXPECT_EQ(fault_of(text), "1" + what) << text;
  }
  EXPECT_EQ(fault_of("a = [\n1]\n [.a]"), "3" + what);
  EXPECT_EQ(fault_of("a = '''\n\n''' # [\n[[.a]"), "4" + what);
  EXPECT_EQ(fault_of("\xEF\xBB\xBF[.a"), "1" + what);
}

TEST(TomlGuard, RefusesLettersBeyondAsciiOutsideStrings) {
  for (const char* text :
       {"\xC3\xA9 = 1", "[\xC3\xA9]", "[a\xC3\xA9]", "a = \xC3\xA9", "a.\xC3\xA9 = 1", "a = 1 \xC3\xA9",
        "a = [\xC3\xA9]", "a = {\xC3\xA9 = 1}", "\xC2\xA0", "\xFF", "a = \"\"\xC3\xA9", "[ \xC3\xA9]",
        "a = [\"\"\"x\"\"\"\", \xC3\xA9]", "a = ['''x''''', \xC3\xA9]", "a = 1'\xC3\xA9'", "a=-'\xC3\xA9'",
        "a = [0.\"\xC3\xA9\"]", "a = 10:20 0'\xC3\xA9'", "a = 0='\xC3\xA9'"}) {
    EXPECT_THAT(fault_of(text), HasSubstr("1: a character beyond ASCII stands outside strings and comments; put"))
        << text;
  }
  EXPECT_THAT(fault_of("a = 'x'\n# \xC3\xA9\nb = \"\\\"\" \xC3\xA9"), HasSubstr("3: a character"));
  EXPECT_THAT(fault_of("a = \"not closed\n\xC3\xA9"), HasSubstr("2: a character"));
}

TEST(TomlGuard, RefusesLettersBeyondAsciiAfterABackslash) {
  EXPECT_EQ(fault_of("a = \"\"\"\\\xC3\xA9\"\"\""),
            "1: a backslash goes on to a character beyond ASCII; write that one as \\u and its four digits");
  EXPECT_THAT(fault_of("a = \"\"\"\\ \t\xC3\xA9\"\"\""), HasSubstr("1: a backslash goes on"));
  EXPECT_THAT(fault_of("a = \"\"\"\\\n\r\n \n\t\xC3\xA9\"\"\""), HasSubstr("4: a backslash goes on"));
}

TEST(TomlGuard, RefusesKeysWithManyDots) {
  const std::string dots16 = "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a";
  EXPECT_EQ(fault_of(dots16 + " = 1\n[" + dots16 + "]\nb = {" + dots16 + " = 1, " + dots16 + " = 2}"), "");
  const std::string what = ": a key has too many dots; at most 16 can be read";
  EXPECT_EQ(fault_of("\n" + dots16 + ".a = 1"), "2" + what);
  EXPECT_EQ(fault_of("[" + dots16 + " . 'a']"), "1" + what);
  EXPECT_EQ(fault_of("[[" + dots16 + ".\"a\"]]"), "1" + what);
  EXPECT_EQ(fault_of("b = {x = 1, " + dots16 + ".a = 1}"), "1" + what);
}

TEST(TomlGuard, RefusesABraceThatEndsAnArray) {
  for (const char* text : {"a = [}", "a = [1,}", "a = [1}", "a = {b = [}", "[a}", "a = [[]}"}) {
    EXPECT_EQ(fault_of(text), "1: } stands where only ] can close what [ opened") << text;
  }
  EXPECT_EQ(fault_of("a = {b = [{}]}\nc = [\n{a = '}', b = [1]} # }\n]\n}"), "");
}

TEST(TomlGuard, RefusesDates) {
  for (const char* text : {"a = 2000-01-01 1\n", "a = 2000-01-01", "a=2000-01-01T00:00:00Z", "a = [2_000-01-01 1,"}) {
    EXPECT_EQ(fault_of(text), "1: no key takes a date; if this is a text, put it in quotes") << text;
  }
  EXPECT_EQ(fault_of("a = -1e-1\nb-c-d = 07:32:00\nc = '2000-01-01' # 2000-01-01 1\nd = +1.5e-7"), "");
}

TEST(TomlGuard, HoldsForTextsThatBreakOff) {
  const std::string text = "[[a]] # \xC3\xA9\nb = [\"\\\"\", '''\n'''', \"\"\"\\\n \"\"\"]\n";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    EXPECT_EQ(fault_of(std::string_view(text).substr(0, length)), "") << text.substr(0, length);
  }
}

}  // namespace
}  // namespace belljar
