#include "egress/mask.h"

#include <gtest/gtest.h>

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
}

}  // namespace
}  // namespace belljar::egress
