#include "image/tree_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "spec/errors.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Kind = TreeEntry::Kind;

class TreeWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "tree_writer.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    root_ = folder_ / "root";
    outside_ = folder_ / "outside";
    fs::create_directory(root_);
    fs::create_directory(outside_);
    std::ofstream(outside_ / "canary") << "canary";
    fd_ = Fd(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    next_layer(LayerPlace::first);
  }

  void TearDown() override {
    EXPECT_EQ(content(outside_ / "canary"), "canary");
    struct stat status{};
    EXPECT_EQ(::stat((outside_ / "canary").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0644U);
    EXPECT_EQ(status.st_nlink, 1U);
    EXPECT_EQ(std::distance(fs::directory_iterator(outside_), fs::directory_iterator()), 1);
    fs::remove_all(folder_);
  }

  void next_layer(LayerPlace place) { writer_.emplace(fd_.get(), Ownership::caller, limits_, place, TreeCounts{}); }

  Result<void> add(const TreeEntry& entry, const std::string& text = "") {
    TreeEntry whole = entry;
    whole.size = text.size();
    bool is_done = false;
    return writer_->add(whole, [&]() -> Result<std::optional<ContentBlock>> {
      if (std::exchange(is_done, true) || text.empty()) return std::nullopt;
      return ContentBlock{text, 0};
    });
  }

  Result<void> file(const std::string& path, const std::string& text = "x", mode_t mode = 0644) {
    return add({.kind = Kind::file, .path = path, .mode = mode}, text);
  }
  Result<void> folder(const std::string& path, mode_t mode = 0755) {
    return add({.kind = Kind::folder, .path = path, .mode = mode});
  }
  Result<void> link(const std::string& path, const std::string& target) {
    return add({.kind = Kind::link, .path = path, .mode = 0777, .target = target});
  }

  static std::string content(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  bool is_there(const std::string& path) const {
    return fs::symlink_status(root_ / path).type() != fs::file_type::not_found;
  }
  unsigned mode(const std::string& path) const {
    struct stat status{};
    return ::lstat((root_ / path).c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
  }

  static std::string message(const Result<void>& result) {
    EXPECT_FALSE(result.has_value());
    return result ? "" : result.error().message;
  }

  TreeLimits limits_{.entries_max = 1000, .bytes_max = 1 << 20};
  fs::path folder_;
  fs::path root_;
  fs::path outside_;
  Fd fd_;
  std::optional<TreeWriter> writer_;
};

TEST_F(TreeWriterTest, WritesEveryKind) {
  ASSERT_TRUE(folder("usr/bin", 0750));
  ASSERT_TRUE(file("usr/bin/tool", "#!", 0755));
  ASSERT_TRUE(link("bin", "usr/bin"));
  ASSERT_TRUE(add({.kind = Kind::hard_link, .path = "usr/bin/other", .target = "usr/bin/tool"}));
  ASSERT_TRUE(add({.kind = Kind::special, .path = "usr/null"}));
  ASSERT_TRUE(writer_->finish());
  EXPECT_EQ(content(root_ / "usr/bin/tool"), "#!");
  EXPECT_EQ(mode("usr/bin/tool"), 0755U);
  EXPECT_EQ(mode("usr/bin"), 0750U);
  EXPECT_EQ(fs::read_symlink(root_ / "bin"), "usr/bin");
  EXPECT_EQ(fs::hard_link_count(root_ / "usr/bin/other"), 2U);
  EXPECT_FALSE(is_there("usr/null"));
  EXPECT_EQ(writer_->counts().special_files, 1U);
}

TEST_F(TreeWriterTest, KeepsTimes) {
  const timespec time{.tv_sec = 1'000'000'000, .tv_nsec = 5};
  ASSERT_TRUE(add({.kind = Kind::folder, .path = "d", .mode = 0755, .modified = time}));
  ASSERT_TRUE(add({.kind = Kind::file, .path = "d/f", .mode = 0644, .modified = time}));
  ASSERT_TRUE(add({.kind = Kind::link, .path = "d/l", .modified = time, .target = "f"}));
  ASSERT_TRUE(add({.kind = Kind::file, .path = "d/odd", .mode = 0644, .modified = {.tv_sec = 7, .tv_nsec = -1}}));
  ASSERT_TRUE(writer_->finish());
  struct stat status{};
  for (const char* const path : {"d", "d/f", "d/l"}) {
    ASSERT_EQ(::lstat((root_ / path).c_str(), &status), 0);
    EXPECT_EQ(status.st_mtim.tv_sec, time.tv_sec) << path;
    EXPECT_EQ(status.st_mtim.tv_nsec, time.tv_nsec) << path;
  }
  ASSERT_EQ(::lstat((root_ / "d/odd").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 7);
}

TEST_F(TreeWriterTest, DropsSetIdBits) {
  ASSERT_TRUE(file("su", "x", 06755));
  ASSERT_TRUE(folder("spool", 03777));
  EXPECT_EQ(mode("su"), 0755U);
  EXPECT_EQ(mode("spool"), 01777U);
  EXPECT_EQ(writer_->counts().set_id_bits, 2U);
}

TEST_F(TreeWriterTest, FollowsNoLink) {
  ASSERT_TRUE(link("etc", outside_));
  ASSERT_TRUE(link("up", "../outside"));
  ASSERT_TRUE(link("chain", "up"));
  for (const char* const path : {"etc/canary", "up/canary", "chain/canary", "up/deep/er"}) {
    EXPECT_THAT(message(file(path)), HasSubstr("symbolic link, which is not followed")) << path;
    EXPECT_THAT(message(folder(path)), HasSubstr("symbolic link")) << path;
    EXPECT_THAT(message(link(path, "/")), HasSubstr("symbolic link")) << path;
    EXPECT_THAT(message(add({.kind = Kind::hard_link, .path = "h", .target = path})), HasSubstr("hard link")) << path;
  }
  next_layer(LayerPlace::upper);
  EXPECT_THAT(message(file("up/canary")), HasSubstr("symbolic link"));
  EXPECT_THAT(message(writer_->remove("up/canary")), HasSubstr("symbolic link"));
  EXPECT_THAT(message(writer_->make_opaque("up")), HasSubstr("symbolic link"));
}

TEST_F(TreeWriterTest, ReplacesALinkAndNotWhatItLeadsTo) {
  const std::string canary = outside_ / "canary";
  for (const LayerPlace place : {LayerPlace::first, LayerPlace::upper}) {
    next_layer(place);
    ASSERT_TRUE(link("a", canary));
    ASSERT_TRUE(link("b", outside_));
    ASSERT_TRUE(link("c", outside_));
    ASSERT_TRUE(file("a", "mine", 0600));
    ASSERT_TRUE(folder("b", 0700));
    ASSERT_TRUE(file("b/canary", "mine"));
    ASSERT_TRUE(add({.kind = Kind::special, .path = "c"}));
    ASSERT_TRUE(writer_->finish());
    EXPECT_EQ(content(root_ / "a"), "mine");
    EXPECT_TRUE(fs::is_directory(fs::symlink_status(root_ / "b")));
    EXPECT_FALSE(is_there("c"));
    ASSERT_TRUE(link("b", outside_));  // and back again
    ASSERT_TRUE(link("a", canary));
  }
}

TEST_F(TreeWriterTest, WritesNothingThroughAHardLink) {
  ASSERT_TRUE(file("lower", "lower"));
  next_layer(LayerPlace::upper);
  ASSERT_TRUE(add({.kind = Kind::hard_link, .path = "twin", .target = "lower"}));
  ASSERT_TRUE(file("twin", "upper"));
  EXPECT_EQ(content(root_ / "lower"), "lower");
  EXPECT_EQ(content(root_ / "twin"), "upper");
}

TEST_F(TreeWriterTest, ReplacesAFolderByAFileAndBack) {
  ASSERT_TRUE(file("d/deep/er", "x"));
  ASSERT_TRUE(file("d", "file"));
  EXPECT_EQ(content(root_ / "d"), "file");
  EXPECT_THAT(message(file("d/x")), HasSubstr("is none"));
  ASSERT_TRUE(folder("d"));
  ASSERT_TRUE(file("d/x", "again"));
  EXPECT_EQ(content(root_ / "d/x"), "again");
}

TEST_F(TreeWriterTest, RemovesFromLowerLayersOnly) {
  for (const char* const path : {"d/old", "d/kept", "e/deep/old", "f"}) ASSERT_TRUE(file(path, "lower"));
  ASSERT_TRUE(writer_->remove("d/old"));  // below the first layer is nothing
  EXPECT_TRUE(is_there("d/old"));
  next_layer(LayerPlace::upper);
  ASSERT_TRUE(file("e/new", "upper"));
  ASSERT_TRUE(writer_->remove("d/old"));
  ASSERT_TRUE(writer_->remove("e"));  // the layer's own e/new stays
  ASSERT_TRUE(writer_->remove("f"));
  ASSERT_TRUE(file("f", "upper"));  // and what comes after
  ASSERT_TRUE(writer_->remove("f"));
  ASSERT_TRUE(writer_->remove("no/such/thing"));
  EXPECT_FALSE(is_there("d/old"));
  EXPECT_TRUE(is_there("d/kept"));
  EXPECT_FALSE(is_there("e/deep"));
  EXPECT_EQ(content(root_ / "e/new"), "upper");
  EXPECT_EQ(content(root_ / "f"), "upper");
}

TEST_F(TreeWriterTest, MakesFoldersOpaque) {
  for (const char* const path : {"d/old", "d/both/old", "e/old", "top"}) ASSERT_TRUE(file(path, "lower"));
  next_layer(LayerPlace::upper);
  ASSERT_TRUE(file("d/both/new", "upper"));
  ASSERT_TRUE(writer_->make_opaque("d"));
  ASSERT_TRUE(file("d/later", "upper"));
  EXPECT_FALSE(is_there("d/old"));
  EXPECT_FALSE(is_there("d/both/old"));
  EXPECT_TRUE(is_there("d/both/new"));
  EXPECT_TRUE(is_there("d/later"));
  EXPECT_TRUE(is_there("e/old"));
  ASSERT_TRUE(writer_->make_opaque(""));
  EXPECT_FALSE(is_there("e"));
  EXPECT_FALSE(is_there("top"));
  EXPECT_TRUE(is_there("d/both/new"));
  ASSERT_TRUE(writer_->make_opaque("nowhere"));
}

TEST_F(TreeWriterTest, RemovesALinkAndNotWhatItLeadsTo) {
  ASSERT_TRUE(link("out", outside_));
  next_layer(LayerPlace::upper);
  ASSERT_TRUE(writer_->remove("out"));
  EXPECT_FALSE(is_there("out"));
}

TEST_F(TreeWriterTest, GoesOnAfterAFolderOfTheLastEntryWasRemoved) {
  ASSERT_TRUE(file("d/e/one"));
  next_layer(LayerPlace::upper);
  ASSERT_TRUE(link("d/e/link", "x"));
  ASSERT_TRUE(file("d", "file"));
  ASSERT_TRUE(folder("d"));
  ASSERT_TRUE(file("d/e/two"));
  EXPECT_TRUE(is_there("d/e/two"));
}

TEST_F(TreeWriterTest, HoldsItsLimits) {
  limits_ = {.entries_max = 3, .bytes_max = 10};
  next_layer(LayerPlace::first);
  ASSERT_TRUE(file("a", "12345"));
  ASSERT_TRUE(file("b", "12345"));
  EXPECT_THAT(message(file("c", "1")), HasSubstr("--max-size"));
  EXPECT_THAT(message(folder("d")), HasSubstr("more than 3 entries; belljar image load --max-entries"));
  EXPECT_FALSE(is_there("c"));
  EXPECT_FALSE(is_there("d"));
}

TEST_F(TreeWriterTest, WritesZerosAsHoles) {
  limits_.bytes_max = std::uint64_t{1} << 40;
  next_layer(LayerPlace::first);
  const std::string zeros(1 << 20, '\0');
  std::uint64_t offset = 0;
  const std::uint64_t size = std::uint64_t{200} << 20;
  const auto result = writer_->add({.kind = Kind::file, .path = "zeros", .mode = 0644, .size = size},
                                   [&]() -> Result<std::optional<ContentBlock>> {
                                     if (offset == size) return std::nullopt;
                                     offset += zeros.size();
                                     return ContentBlock{zeros, offset - zeros.size()};
                                   });
  ASSERT_TRUE(result.has_value());
  struct stat status{};
  ASSERT_EQ(::stat((root_ / "zeros").c_str(), &status), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), size);
  EXPECT_LT(status.st_blocks, 100);
}

TEST_F(TreeWriterTest, RefusesContentBeyondTheSize) {
  const TreeEntry entry{.kind = Kind::file, .path = "f", .mode = 0644, .size = 3};
  for (const ContentBlock& block : {ContentBlock{"1234", 0}, ContentBlock{"12", 2}, ContentBlock{"1", UINT64_MAX}}) {
    const auto result = writer_->add(entry, [&]() -> Result<std::optional<ContentBlock>> { return block; });
    EXPECT_THAT(message(result), HasSubstr("not where its size says"));
  }
}

TEST_F(TreeWriterTest, RefusesLinksToNothing) {
  EXPECT_THAT(message(link("l", "")), HasSubstr("link to nothing"));
  EXPECT_THAT(message(link("l", std::string("a\0b", 3))), HasSubstr("link to nothing"));
  EXPECT_THAT(message(add({.kind = Kind::hard_link, .path = "h", .target = "missing"})), HasSubstr("hard link"));
  ASSERT_TRUE(folder("d"));
  EXPECT_THAT(message(add({.kind = Kind::hard_link, .path = "h", .target = "d"})), HasSubstr("hard link"));
}

TEST_F(TreeWriterTest, GivesFilesTheImagesOwners) {
  if (::geteuid() != 0) GTEST_SKIP() << "NOT COVERED: owners of files: needs root";
  writer_.emplace(fd_.get(), Ownership::image, limits_, LayerPlace::first, TreeCounts{});
  ASSERT_TRUE(add({.kind = Kind::file, .path = "f", .mode = 0644, .uid = 1234, .gid = 5678}));
  ASSERT_TRUE(add({.kind = Kind::link, .path = "l", .uid = 1234, .gid = 5678, .target = outside_ / "canary"}));
  ASSERT_TRUE(add({.kind = Kind::folder, .path = "d", .mode = 0755, .uid = UINT32_MAX, .gid = 65536}));
  struct stat status{};
  for (const char* const path : {"f", "l"}) {
    ASSERT_EQ(::lstat((root_ / path).c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 1234U);
    EXPECT_EQ(status.st_gid, 5678U);
  }
  ASSERT_EQ(::lstat((root_ / "d").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, kNobody);
  EXPECT_EQ(status.st_gid, kNobody);
  EXPECT_EQ(writer_->counts().foreign_ids, 1U);
}

}  // namespace
}  // namespace belljar
