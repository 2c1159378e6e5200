#include "files/changeset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <string>

#include "spec/errors.h"

namespace belljar {
namespace {

using testing::HasSubstr;

Changeset sample() {
  const FileStamp before{.size = 3, .modified_ns = -5, .changed_ns = 17, .inode = ~std::uint64_t{0}};
  const std::string digest(64, 'a');
  Changeset set{.workspace = "/home/u/repo", .device = 1, .inode = 2, .created_ns = 1'700'000'000'000'000'000};
  set.changes = {
      {.path = "a", .kind = FileKind::regular, .change = FileChange::deleted, .before = before},
      {.path = "a", .kind = FileKind::folder},
      {.path = "a/\xff\x1b", .size = 4, .sha256 = digest, .is_executable = true, .in_git_folder = true},
      {.path = "b",
       .change = FileChange::modified,
       .size = 0,
       .sha256 = digest,
       .before = before,
       .before_sha256 = digest},
      {.path = "l", .kind = FileKind::link, .link_target = "../\xc3("},
  };
  return set;
}

TEST(Changeset, ComesBackAsItWas) {
  const auto read = read_changeset(changeset_to_json(sample()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, sample());
}

std::string with(std::string_view from, std::string_view to) {
  std::string text = changeset_to_json(sample());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Changeset, TakesNothingElse) {
  EXPECT_FALSE(read_changeset(""));
  EXPECT_FALSE(read_changeset("[]"));
  EXPECT_FALSE(read_changeset("{}"));
  EXPECT_FALSE(read_changeset(with("\"form\":1", "\"form\":2")));
  EXPECT_FALSE(read_changeset(with("\"/home/u/repo\"", "\"repo\"")));
  EXPECT_FALSE(read_changeset(with("\"changes\":[", "\"changes\":[7,")));
  EXPECT_FALSE(read_changeset(with("\"kind\":\"folder\"", "\"kind\":\"device\"")));
  EXPECT_FALSE(read_changeset(with(std::string(64, 'a'), "../../../etc/passwd")));
  EXPECT_FALSE(read_changeset(with("\"executable\":true", "\"executable\":1")));
  EXPECT_FALSE(read_changeset(with("\"size\":3", "\"size\":-3")));
  EXPECT_FALSE(read_changeset(with("\"path\":\"b\"", "\"path\":\"0\""))) << "out of order";
}

TEST(Changeset, PathsLieBelow) {
  for (const std::string path : {"", "/b", "b/", "b//c", "./b", "b/..", "..", "b/./c"}) {
    EXPECT_FALSE(read_changeset(with("\"path\":\"b\"", "\"path\":\"" + path + "\""))) << path;
  }
  EXPECT_FALSE(read_changeset(with("\"path\":\"b\"", "\"path\":\"b\\u0000\"")));
  EXPECT_FALSE(read_changeset(with("\"path\":\"b\"", "\"path\":[\"2e2e\"]"))) << ".. in hexadecimal";
  EXPECT_FALSE(read_changeset(with("\"path\":\"b\"", "\"path\":[\"6\"]")));
  EXPECT_FALSE(read_changeset(with("\"path\":\"b\"", "\"path\":\"" + std::string(NAME_MAX + 1, 'b') + "\"")));
  EXPECT_TRUE(read_changeset(with("\"path\":\"b\"", "\"path\":\"b/...\"")));
}

TEST(Changeset, ErrorsNameWhatIsWrong) {
  const auto read = read_changeset(with("\"inode\":2", "\"inode\":\"2\""));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::bad_changes);
  EXPECT_THAT(read.error().message, HasSubstr("inode"));
}

}  // namespace
}  // namespace belljar
