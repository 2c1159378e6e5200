#include "image/layer_name.h"

#include <gtest/gtest.h>

#include "spec/errors.h"

namespace belljar {
namespace {

using Kind = LayerName::Kind;

LayerName read(std::string_view written, Whiteouts whiteouts = Whiteouts::applied) {
  const auto name = read_layer_name(written, whiteouts);
  EXPECT_TRUE(name.has_value()) << written;
  return name.value_or(LayerName{});
}

std::string refusal(std::string_view written) {
  const auto name = read_layer_name(written, Whiteouts::applied);
  EXPECT_FALSE(name.has_value()) << written;
  if (name) return "";
  EXPECT_EQ(name.error().code, ErrorCode::bad_image);
  return name.error().message;
}

TEST(LayerNameTest, StaysBelowTheRoot) {
  EXPECT_EQ(read("usr/bin/awk").path, "usr/bin/awk");
  EXPECT_EQ(read("./usr//bin/./awk").path, "usr/bin/awk");
  EXPECT_EQ(read("/etc/passwd").path, "etc/passwd");
  EXPECT_EQ(read("var/").path, "var");
  EXPECT_EQ(read("...").path, "...");
  EXPECT_EQ(read("a..b/..c").path, "a..b/..c");
}

TEST(LayerNameTest, KnowsTheRoot) {
  for (const char* const written : {"", ".", "/", "./", "/.", "./.", "//"}) {
    EXPECT_EQ(read(written).kind, Kind::root) << written;
  }
}

TEST(LayerNameTest, RefusesToClimb) {
  for (const char* const written : {"..", "../x", "/..", "a/../../x", "a/..", "./../x"}) {
    EXPECT_NE(refusal(written).find(".. in it"), std::string::npos) << written;
  }
}

TEST(LayerNameTest, RefusesWhatIsTooLongOrTooDeep) {
  EXPECT_NE(refusal(std::string(5000, 'x')).find("longer than 4095"), std::string::npos);
  EXPECT_NE(refusal(std::string(256, 'x')).find("longer than 255"), std::string::npos);
  EXPECT_EQ(read(std::string(255, 'x')).path.size(), 255U);
  std::string deep;
  for (std::size_t i = 0; i < kEntryDepthMax; ++i) deep += "d/";
  EXPECT_EQ(read(deep).path.size(), deep.size() - 1);
  EXPECT_NE(refusal(deep + "d").find("more than 128 parts"), std::string::npos);
  EXPECT_NE(refusal(std::string_view("a\0b", 3)).find("NUL"), std::string::npos);
}

TEST(LayerNameTest, ReadsWhiteouts) {
  EXPECT_EQ(read(".wh.old").kind, Kind::whiteout);
  EXPECT_EQ(read(".wh.old").path, "old");
  EXPECT_EQ(read("./etc/.wh.passwd").path, "etc/passwd");
  EXPECT_EQ(read("etc/.wh..hidden").path, "etc/.hidden");
  EXPECT_EQ(read("etc/.wh..wh..opq").kind, Kind::opaque);
  EXPECT_EQ(read("etc/.wh..wh..opq").path, "etc");
  EXPECT_EQ(read(".wh..wh..opq").kind, Kind::opaque);
  EXPECT_EQ(read(".wh..wh..opq").path, "");
  EXPECT_EQ(read("etc/.whatever").kind, Kind::entry);
}

TEST(LayerNameTest, RefusesWhiteoutsOfNothing) {
  for (const char* const written : {".wh.", ".wh..", ".wh...", "a/.wh.", "a/.wh..", "a/.wh...", "a/.wh..wh.x"}) {
    EXPECT_NE(refusal(written).find("must name what it removes"), std::string::npos) << written;
  }
  for (const char* const written : {".wh.a/b", "a/.wh.b/c", "a/.wh.b/.wh.c", "a/.wh..wh..opq/b"}) {
    EXPECT_NE(refusal(written).find("below a whiteout"), std::string::npos) << written;
  }
}

TEST(LayerNameTest, IgnoresMarksOfAufs) {
  for (const char* const written : {".wh..wh.aufs", ".wh..wh.plnk", "./.wh..wh.plnk/99.1", ".wh..wh.orph/x/y"}) {
    EXPECT_EQ(read(written).kind, Kind::ignored) << written;
  }
}

TEST(LayerNameTest, TakesWhiteoutsLiterallyInARootFileSystem) {
  EXPECT_EQ(read("etc/.wh.passwd", Whiteouts::literal).path, "etc/.wh.passwd");
  EXPECT_EQ(read("etc/.wh.", Whiteouts::literal).kind, Kind::entry);
}

}  // namespace
}  // namespace belljar
