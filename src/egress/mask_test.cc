#include "egress/mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace belljar::egress {
namespace {

const std::vector<std::string> kValues = {"sk-12345678", "5678abcdefgh", "aaaaaaab"};

std::string in_pieces(std::string_view text, std::size_t size) {
  Mask mask(kValues);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += size) mask.feed(text.substr(at, size), &out);
  mask.finish(&out);
  return out;
}

TEST(Mask, PutsPlaceholdersOverValues) {
  EXPECT_EQ(masked(kValues, "a key: sk-12345678."), "a key: belljar-pla.");
  EXPECT_EQ(masked(kValues, "sk-12345678sk-12345678"), "belljar-plabelljar-pla");
  EXPECT_EQ(masked(kValues, "aaaaaaaaab"), "aabelljar-");
  EXPECT_EQ(masked(kValues, "nothing of sk-1234567 here"), "nothing of sk-1234567 here");
  EXPECT_EQ(masked({}, "sk-12345678"), "sk-12345678");
}

TEST(Mask, HidesValuesThatOverlap) {
  const std::string out = masked(kValues, "x sk-12345678abcdefgh y");
  EXPECT_EQ(out.size(), 23U);
  EXPECT_EQ(out.find_first_of("12345678"), std::string::npos) << out;
  EXPECT_EQ(out.find("cdefgh"), std::string::npos) << out;
}

TEST(Mask, PiecesMakeNoDifference) {
  for (const std::string_view text : {"x sk-12345678abcdefgh y", "sk-sk-12345678", "aaaaaaaaaaaab aaaaaaab",
                                      "sk-123456789", "sk-12345678abcdefg", "sk-1234567", ""}) {
    for (std::size_t size = 1; size < 15; ++size) {
      EXPECT_EQ(in_pieces(text, size), masked(kValues, text)) << text << " by " << size;
    }
  }
}

TEST(Mask, KeepsOnlyWhatMayBeAValue) {
  Mask mask(kValues);
  std::string out;
  mask.feed("data: s\n\n", &out);
  EXPECT_EQ(out, "data: s\n\n");
  mask.feed("data: sk-", &out);
  EXPECT_EQ(out, "data: s\n\ndata: ");
  mask.feed("x", &out);
  EXPECT_EQ(out, "data: s\n\ndata: sk-x");
}

// The end of a value that another one may begin with is covered whatever comes.
TEST(Mask, KeepsNothingThatIsCovered) {
  Mask mask(kValues);
  std::string out;
  mask.feed("key: sk-12345678", &out);
  EXPECT_EQ(out, "key: belljar-pla");
  mask.feed("abcd", &out);
  EXPECT_EQ(out, "key: belljar-pla");
  mask.feed("efgh.", &out);
  EXPECT_EQ(out, "key: belljar-plajar-plac.");
  mask.feed("sk-12345678", &out);
  mask.feed("!", &out);
  EXPECT_EQ(out, "key: belljar-plajar-plac.belljar-pla!");
}

// Compared with the plain meaning, at each cut of texts that are made of nothing but beginnings of values.
TEST(Mask, GivesAllThatIsCertain) {
  const std::vector<std::string> values = {"abab", "bba", "aabb"};
  const auto is_value_begun = [&](std::string_view end) {
    return std::ranges::any_of(
        values, [&](const std::string& value) { return end.size() < value.size() && value.starts_with(end); });
  };
  for (unsigned bits = 0; bits < 1024; ++bits) {
    std::string text;
    for (unsigned i = 0; i < 10; ++i) text += (bits >> i & 1U) != 0 ? 'a' : 'b';
    Mask mask(values);
    std::string out;
    for (std::size_t size = 1; size <= text.size(); ++size) {
      mask.feed(text.substr(size - 1, 1), &out);
      std::size_t certain = 0;
      while (certain < size && !is_value_begun(std::string_view(text).substr(certain, size - certain))) ++certain;
      EXPECT_GE(out.size(), certain) << text.substr(0, size);
      const std::string whole = masked(values, text.substr(0, size));
      while (certain < size && whole[certain] != text[certain]) ++certain;
      EXPECT_LE(out.size(), certain) << text.substr(0, size);
      EXPECT_EQ(out, whole.substr(0, out.size())) << text.substr(0, size);
    }
    mask.finish(&out);
    EXPECT_EQ(out, masked(values, text));
  }
}

}  // namespace
}  // namespace belljar::egress
