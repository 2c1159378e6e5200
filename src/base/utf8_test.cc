#include "base/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace belljar {
namespace {

std::string neutralised(std::string_view text) {
  TerminalNeutraliser neutraliser;
  std::string out;
  neutraliser.feed(text, out);
  neutraliser.finish(out);
  return out;
}

TEST(Utf8, TellsWellFormedFromIllFormed) {
  for (const char* good : {"", "a", "\x7F", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x8E\x85", "\xED\x9F\xBF",
                           "\xEE\x80\x80", "\xF4\x8F\xBF\xBF", "\xC2\x9B", "\xEF\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << quote(good);
  }
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82", "\xF0\x9F\x8E", "\xC3(", "a\xE2\x82z"}) {
    EXPECT_FALSE(is_utf8(bad)) << quote(bad);
  }
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
}

TEST(Utf8, DecodesTheLastCodePoint) {
  EXPECT_EQ(decode_utf8("\xF4\x8F\xBF\xBF").code_point, char32_t{0x10FFFF});
}

TEST(Utf8, CutsBeforeACharacterThatDoesNotFit) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\x85";  // 1 + 2 + 3 + 4 bytes
  const std::size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (std::size_t most = 0; most < std::size(expected); ++most) {
    EXPECT_EQ(utf8_prefix(text, most).size(), expected[most]) << most;
  }
}

TEST(Utf8, CutKeepsBytesThatBeginNoCharacter) {
  EXPECT_EQ(utf8_cut(""), 0u);
  EXPECT_EQ(utf8_cut("\x80\x80\x80\x80"), 4u);
  EXPECT_EQ(utf8_cut("abc\xFF"), 4u);
  EXPECT_EQ(utf8_cut("abc\xF0\x80"), 5u);  // F0 80 can't begin a character: nothing to wait for
  EXPECT_EQ(utf8_cut("abc\xC3"), 3u);
}

TEST(TerminalNeutraliser, PassesTextAndShowsControls) {
  EXPECT_EQ(neutralised("plain \xC3\xA9 \xF0\x9F\x8E\x85\ttab\nline"), "plain \xC3\xA9 \xF0\x9F\x8E\x85\ttab\nline");
  EXPECT_EQ(neutralised("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(neutralised("\x7f\x08"), "\\x7f\\x08");
  EXPECT_EQ(neutralised(std::string_view("\0", 1)), "\\x00");
}

TEST(TerminalNeutraliser, ShowsC1InBothEncodings) {
  EXPECT_EQ(neutralised("\x9d"
                        "52;c;"),
            "\\x9d52;c;");
  EXPECT_EQ(neutralised("\xC2\x9d"
                        "52;c;"),
            "\\u009d52;c;");
  EXPECT_EQ(neutralised("\xC2\xA0"), "\xC2\xA0");
}

TEST(TerminalNeutraliser, ShowsTextReordering) {
  EXPECT_EQ(neutralised("\xE2\x80\xAE!"), "\\u202e!");
}

TEST(TerminalNeutraliser, MakesEveryCarriageReturnALineEnd) {
  EXPECT_EQ(neutralised("a\r\nb\rc\r\r\nd\n\ne\r"), "a\nb\nc\n\nd\n\ne\n");
}

TEST(TerminalNeutraliser, ShowsWhatIsLeftAtTheEnd) {
  EXPECT_EQ(neutralised("a\xE2\x82"), "a\\xe2\\x82");
}

// However the stream is cut into chunks, the same comes out, and nothing in it can move a cursor.
TEST(TerminalNeutraliser, DoesNotDependOnChunks) {
  std::mt19937 random(7);
  const std::string_view alphabet("a\r\n\x1b\xC2\x9b\xE2\x80\xAE\xF0\x9F\x8E\x85\xFF\x80\t", 17);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = random() % 24; i > 0; --i) text += alphabet[random() % alphabet.size()];
    TerminalNeutraliser neutraliser;
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + random() % 3;
      neutraliser.feed(std::string_view(text).substr(at, size), out);
      at += size;
    }
    neutraliser.finish(out);
    ASSERT_EQ(out, neutralised(text)) << quote(text);
    ASSERT_TRUE(is_utf8(out)) << quote(text);
    for (std::string_view rest = out; !rest.empty();) {
      const Utf8Step step = decode_utf8(rest);
      const char32_t c = step.code_point;
      ASSERT_TRUE(c == '\n' || c == '\t' || (c >= 0x20 && !(c >= 0x7F && c <= 0x9F))) << quote(text);
      rest.remove_prefix(step.length);
    }
  }
}

TEST(Quote, IsOneHarmlessLine) {
  EXPECT_EQ(quote("a\"b\\c\n\r\t\x1b"), "\"a\\\"b\\\\c\\n\\r\\t\\x1b\"");
  EXPECT_EQ(quote(std::string(200, 'x'), 10), "\"xxxxxxxxxx...\"");
  EXPECT_EQ(quote("ma\u200bin.c"), "\"ma\\u200bin.c\"");
  EXPECT_EQ(one_line("\ufeffa\u00adb"), "\\ufeffa\\u00adb");
  EXPECT_EQ(one_line("it's \"fine\"\n"), "it's \"fine\"\\n");
}

}  // namespace
}  // namespace belljar
