#include "files/text_diff.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace belljar {
namespace {

using testing::HasSubstr;

std::string numbered(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}\n", i);
  return text;
}

// What the hunks make of `before`, as patch(1) would; "broken" where they don't fit.
std::string patched(std::string_view before, std::string_view hunks) {
  std::vector<std::string_view> lines;
  for (std::string_view rest = before; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  std::string out;
  std::size_t at = 0;
  std::string_view rest = hunks;
  const auto next = [&rest] {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    return line;
  };
  while (!rest.empty()) {
    const std::string_view line = next();
    if (line.starts_with("@@ -")) {
      std::size_t first = 0;
      std::size_t count = 1;
      const std::string range(line.substr(4, line.find(' ', 4) - 4));
      if (std::sscanf(range.c_str(), "%zu,%zu", &first, &count) < 1) return "broken";
      const std::size_t begin = count == 0 ? first : first - 1;
      if (begin < at || begin > lines.size()) return "broken";
      for (; at < begin; ++at) out += lines[at];
      continue;
    }
    std::string text(line.substr(1));
    if (rest.starts_with("\\ No newline")) {
      next();
      text.pop_back();
    }
    if (line[0] != '+' && (at == lines.size() || lines[at++] != text)) return "broken";
    if (line[0] != '-') out += text;
  }
  for (; at < lines.size(); ++at) out += lines[at];
  return out;
}

TEST(UnifiedHunks, EqualTextsHaveNone) {
  EXPECT_EQ(unified_hunks("", ""), "");
  EXPECT_EQ(unified_hunks("a\n", "a\n"), "");
}

TEST(UnifiedHunks, AsDiffWritesThem) {
  EXPECT_EQ(unified_hunks("", "a\nb\n"), "@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(unified_hunks("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
  EXPECT_EQ(unified_hunks("a\nb\nc\n", "a\nB\nc\n"), "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
  EXPECT_EQ(unified_hunks("a", "a\n"), "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
  std::string changed = numbered(30);
  changed.replace(changed.find("\n10\n"), 4, "\nten\n");
  EXPECT_EQ(unified_hunks(numbered(30), changed), "@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n");
}

TEST(UnifiedHunks, FarChangesAreHunksOfTheirOwn) {
  const std::string after = "new\n" + numbered(30) + "end\n";
  EXPECT_EQ(unified_hunks(numbered(30), after),
            "@@ -1,3 +1,4 @@\n+new\n 0\n 1\n 2\n@@ -28,3 +29,4 @@\n 27\n 28\n 29\n+end\n");
  const std::string near = unified_hunks(numbered(6), "new\n" + numbered(6) + "end\n");
  EXPECT_THAT(near, HasSubstr("@@ -1,6 +1,8 @@"));
}

TEST(UnifiedHunks, PatchingGivesTheNewText) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const auto text = [&random] {
      std::string made;
      const auto lines = static_cast<int>(random() % 25);
      for (int i = 0; i < lines; ++i) made += fmt::format("{}\n", random() % 4);
      if (!made.empty() && random() % 4 == 0) made.pop_back();
      return made;
    };
    const std::string before = text();
    const std::string after = text();
    ASSERT_EQ(patched(before, unified_hunks(before, after)), after) << before << "\n->\n" << after;
  }
}

TEST(UnifiedHunks, ManyDifferencesAreShownAsAReplacement) {
  std::string after;
  for (int i = 0; i < 20000; ++i) after += fmt::format("other {}\n", i);
  const std::string hunks = unified_hunks(numbered(20000), after);
  EXPECT_THAT(hunks, HasSubstr("@@ -1,20000 +1,20000 @@"));
  EXPECT_EQ(patched(numbered(20000), hunks), after);
}

TEST(IsBinary, ByItsFirstBytes) {
  EXPECT_FALSE(is_binary(""));
  EXPECT_FALSE(is_binary("text \xff\n"));
  EXPECT_TRUE(is_binary(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace belljar
