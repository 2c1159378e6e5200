#include "files/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "files/test_folder.h"

namespace belljar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Folders stand in for the writable places /tmp and /out of a sandbox.
class CollectTest : public testing::Test {
 protected:
  Collected collect(const std::string& source, const std::string& destination) {
    spec_.collect = {{source, destination}};
    auto destinations = open_destinations(spec_.collect);
    EXPECT_TRUE(destinations) << destinations.error().message;
    if (!destinations) return {};
    return collect_files(spec_, {{"/tmp", tmp_.fd()}, {"/out", out_.fd()}}, *destinations, -1);
  }
  Collected collect(const std::string& source) { return collect(source, host_.at("results")); }

  std::string refusal(const std::string& destination) {
    const auto opened = open_destinations({{"/out", destination}});
    EXPECT_FALSE(opened) << destination;
    return opened ? "" : opened.error().message;
  }

  std::vector<std::string> saved_paths() const {
    std::vector<std::string> paths;
    if (!host_.has("results")) return paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(host_.at("results"))) {
      paths.push_back(std::filesystem::relative(entry.path(), host_.at("results")).string());
    }
    return paths;
  }

  // "path: reason" of each.
  static std::vector<std::string> skipped(const Collected& collected) {
    std::vector<std::string> lines;
    for (const SkippedFile& file : collected.skipped) lines.push_back(file.path + ": " + file.reason);
    return lines;
  }

  SandboxSpec spec_;
  const TestFolder tmp_;
  const TestFolder out_;
  const TestFolder host_;
};

TEST_F(CollectTest, AWholeFolder) {
  out_.make_folder("a/b");
  out_.make_folder("empty");
  out_.write("a/b/file", "content");
  out_.write("top", "");
  const Collected collected = collect("/out");
  EXPECT_THAT(saved_paths(), UnorderedElementsAre("a", "a/b", "a/b/file", "empty", "top"));
  EXPECT_EQ(host_.read("results/a/b/file"), "content");
  EXPECT_THAT(collected.skipped, IsEmpty());
  EXPECT_FALSE(collected.truncated);
  ASSERT_EQ(collected.files.size(), 2u);
  EXPECT_EQ(collected.files[0].path, "/out/a/b/file");
  EXPECT_EQ(collected.files[0].saved_as, host_.at("results/a/b/file"));
  EXPECT_EQ(collected.files[0].size, 7u);
  EXPECT_EQ(collected.files[0].sha256.size(), 64u);
}

TEST_F(CollectTest, AFolderBelowAPlace) {
  out_.make_folder("a/b");
  out_.write("a/b/file", "content");
  collect("/out/a");
  EXPECT_THAT(saved_paths(), UnorderedElementsAre("b", "b/file"));
}

TEST_F(CollectTest, OneFile) {
  tmp_.make_folder("d");
  tmp_.write("d/a.txt", "A");
  tmp_.write("d/b.txt", "B");
  EXPECT_EQ(collect("/tmp/d/a.txt").files.size(), 1u);
  EXPECT_THAT(saved_paths(), ElementsAre("a.txt"));
}

TEST_F(CollectTest, Wildcards) {
  tmp_.make_folder("run1/deep");
  tmp_.make_folder("run2");
  for (const char* name :
       {"a.png", "b.png", ".hidden.png", "c.txt", "run1/out.csv", "run2/out.csv", "run1/deep/out.csv"})
    tmp_.write(name, name);
  collect("/tmp/*.png");
  EXPECT_THAT(saved_paths(), UnorderedElementsAre("a.png", "b.png"));
  std::filesystem::remove_all(host_.at("results"));
  collect("/tmp/run?/*.csv");
  EXPECT_THAT(saved_paths(), UnorderedElementsAre("run1", "run1/out.csv", "run2", "run2/out.csv"));
  std::filesystem::remove_all(host_.at("results"));
  collect("/tmp/run1/[a-z]*");
  EXPECT_THAT(saved_paths(), UnorderedElementsAre("deep", "deep/out.csv", "out.csv"));
  std::filesystem::remove_all(host_.at("results"));
  const Collected none = collect("/tmp/*.jpg");
  EXPECT_THAT(none.files, IsEmpty());
  EXPECT_FALSE(host_.has("results"));
}

TEST_F(CollectTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(skipped(collect("/tmp/a.json")), ElementsAre("/tmp/a.json: there is no such file or folder"));
  EXPECT_THAT(skipped(collect("/tmp/a/b")), ElementsAre("/tmp/a: there is no such file or folder"));
  EXPECT_THAT(skipped(collect("/other/b")), ElementsAre("/other/b: the sandbox ended before it had a place for files"));
}

TEST_F(CollectTest, NeitherLinksNorPipesNorSockets) {
  host_.write("secret", "secret");
  host_.make_folder("folder");
  out_.link(host_.at("secret"), "link");
  out_.link(host_.at("folder"), "folder link");
  out_.link(".", "loop");
  ASSERT_EQ(::mkfifoat(out_.fd(), "pipe", 0666), 0);
  out_.write("file", "x");
  const Collected collected = collect("/out");
  EXPECT_THAT(saved_paths(), ElementsAre("file"));
  EXPECT_THAT(skipped(collected), ElementsAre("/out/folder link: a symbolic link", "/out/link: a symbolic link",
                                              "/out/loop: a symbolic link", "/out/pipe: a named pipe"));
  EXPECT_FALSE(collected.truncated);
  for (const char* named :
       {"/out/link", "/out/folder link", "/out/pipe", "/out/loop/file", "/out/folder link/x", "/out/lin?"}) {
    EXPECT_THAT(collect(named).files, IsEmpty()) << named;
  }
}

TEST_F(CollectTest, HostLinksAreNotFollowed) {
  out_.make_folder("sub");
  out_.write("sub/file", "x");
  out_.write("top", "x");
  host_.make_folder("elsewhere");
  host_.make_folder("results");
  host_.link("../elsewhere", "results/sub");
  host_.link("../elsewhere/top", "results/top");
  spec_.collect_existing = ExistingFiles::replace;
  const Collected collected = collect("/out");
  EXPECT_THAT(skipped(collected),
              ElementsAre("/out/sub: something else than a folder is in its place: " + host_.at("results/sub"),
                          "/out/top: a symbolic link is in its place, and is never replaced"));
  EXPECT_TRUE(collected.truncated);
  EXPECT_TRUE(std::filesystem::is_empty(host_.at("elsewhere")));
}

TEST_F(CollectTest, LimitOfOneFile) {
  spec_.limits.collect_file.value = 10;
  out_.write("a", "0123456789");
  out_.write("b", "0123456789X");
  ASSERT_EQ(::truncate((out_.write("sparse", ""), out_.at("sparse")).c_str(), off_t{1} << 40), 0);
  const Collected collected = collect("/out");
  EXPECT_THAT(saved_paths(), ElementsAre("a"));
  EXPECT_THAT(skipped(collected),
              ElementsAre("/out/b: its 11 bytes go past the limit of 10 B for one file (--collect-file-size)",
                          HasSubstr("/out/sparse: its 1099511627776 bytes")));
  EXPECT_TRUE(collected.truncated);
}

TEST_F(CollectTest, LimitOfAllFilesCountsEachName) {
  spec_.limits.collect_size.value = 25;
  out_.write("a", "0123456789");
  ASSERT_EQ(::link(out_.at("a").c_str(), out_.at("b").c_str()), 0);
  ASSERT_EQ(::link(out_.at("a").c_str(), out_.at("c").c_str()), 0);
  out_.write("d", "0");
  const Collected collected = collect("/out");
  EXPECT_THAT(saved_paths(), UnorderedElementsAre("a", "b", "d"));
  EXPECT_THAT(skipped(collected), ElementsAre(HasSubstr("limit of 25 B for all files together (--collect-size)")));
}

TEST_F(CollectTest, LimitOfEntries) {
  spec_.limits.collect_entries.value = 5;
  for (const char* name : {"a", "b", "c", "d"}) out_.make_folder(name), out_.write(std::string(name) + "/f", "x");
  const Collected collected = collect("/out");
  EXPECT_EQ(collected.files.size(), 1u);
  EXPECT_THAT(skipped(collected),
              ElementsAre(HasSubstr("collecting ends after 5 files and folders (--collect-entries)")));
  EXPECT_TRUE(collected.truncated);
}

// Below the destination, however the folder was named.
TEST_F(CollectTest, LimitOfDepth) {
  tmp_.make_folder("some/top");
  const std::pair<const TestFolder*, std::string> ways[] = {{&out_, ""}, {&tmp_, "some/top"}};
  for (const auto& [place, top] : ways) {
    Fd folder(::openat(place->fd(), top.empty() ? "." : top.c_str(), O_PATH | O_CLOEXEC));
    for (unsigned i = 0; i < 3 * kCollectDepthMax; ++i) {
      ASSERT_EQ(::mkdirat(folder.get(), "d", 0755), 0);
      folder = Fd(::openat(folder.get(), "d", O_PATH | O_CLOEXEC));
      if (i + 1 != kCollectDepthMax) continue;
      ASSERT_TRUE(open_at(folder.get(), "last", O_CREAT | O_WRONLY, 0644));
    }
    const Collected collected =
        top.empty() ? collect("/out") : collect("/tmp/" + top, host_.at("results-of-" + top.substr(5)));
    EXPECT_EQ(collected.files.size(), 1u) << top;
    ASSERT_EQ(collected.skipped.size(), 1u) << top;
    EXPECT_EQ(collected.skipped[0].reason, "more than 100 folders deep");
    EXPECT_TRUE(collected.truncated);
  }
}

TEST_F(CollectTest, OddNamesComeBackAsTheyAre) {
  const std::vector<std::string> names = {"\n",
                                          "\t\x1b[31m",
                                          "'\"\\",
                                          "-rf",
                                          "...",
                                          " ",
                                          "x. ",
                                          "\xff\xfe",
                                          "e\u0301",
                                          "\u00e9",
                                          "\u202e",
                                          std::string(255, 'n'),
                                          "%2e%2e",
                                          "C:",
                                          "*",
                                          "\u200b",
                                          ".belljar-1-0.part"};
  for (const std::string& name : names) out_.write(name, name);
  const Collected collected = collect("/out");
  EXPECT_EQ(collected.files.size(), names.size());
  for (const std::string& name : names) EXPECT_EQ(host_.read("results/" + name), name);
}

TEST_F(CollectTest, MountsOfTheHostAreLeftOut) {
  spec_.mounts = {{"./x", "/out/data", MountAccess::read_write}};
  out_.write("data", "");
  out_.write("file", "x");
  EXPECT_THAT(skipped(collect("/out")), ElementsAre("/out/data: mounted from the host"));
}

TEST_F(CollectTest, ProtectedPaths) {
  out_.make_folder(".git/hooks");
  out_.make_folder(".VSCode");
  out_.make_folder("module/objects");
  for (const char* name : {".git/hooks/pre-commit", ".git/config", ".git/index", ".VSCode/tasks.json", ".envrc",
                           "module/HEAD", "module/config", "config"})
    out_.write(name, "x");
  const Collected collected = collect("/out");
  EXPECT_THAT(saved_paths(), UnorderedElementsAre(".git", ".git/index", "module", "module/objects", "config"));
  EXPECT_THAT(
      skipped(collected),
      ElementsAre(HasSubstr("/out/.VSCode: editors run"), HasSubstr("/out/.envrc: direnv runs it"),
                  HasSubstr("/out/.git/config: git runs programs"), HasSubstr("/out/.git/hooks: git runs hooks"),
                  HasSubstr("/out/module/HEAD: git takes a folder with it for a repository"),
                  HasSubstr("/out/module/config: git runs programs")));
  EXPECT_TRUE(collected.truncated);
}

TEST_F(CollectTest, ProtectedPathsThatTheCallerNames) {
  out_.make_folder(".git/hooks");
  out_.write(".git/hooks/pre-commit", "x");
  out_.write(".envrc", "x");
  EXPECT_EQ(collect("/out/.envrc").files.size(), 1u);
  EXPECT_EQ(collect("/out/.git/hooks", host_.at("results/hooks")).files.size(), 1u);
  EXPECT_THAT(collect("/out/.en*", host_.at("other")).files, IsEmpty());
}

TEST_F(CollectTest, ProtectedByTheFolderOnTheHost) {
  out_.make_folder("hooks");
  out_.write("hooks/pre-commit", "x");
  out_.write("config", "x");
  host_.make_folder(".git");
  EXPECT_THAT(collect("/out", host_.at(".git")).files, IsEmpty());
  host_.make_folder("bare/objects");
  host_.write("bare/HEAD", "x");
  EXPECT_THAT(collect("/out", host_.at("bare")).files, IsEmpty());
  EXPECT_EQ(collect("/out").files.size(), 2u);
}

TEST_F(CollectTest, DestinationsThatCanNotBeUsed) {
  host_.write("file", "x");
  host_.make_folder("real");
  host_.link("real", "link");
  EXPECT_EQ(refusal(host_.at("file")), "--collect /out:" + host_.at("file") + ": not a folder");
  EXPECT_THAT(refusal(host_.at("link")), HasSubstr("a part of this path is a symbolic link"));
  EXPECT_THAT(refusal(host_.at("link/x")), HasSubstr("a part of this path is a symbolic link"));
  EXPECT_THAT(refusal(host_.at("missing/x")), HasSubstr("the folder that it would be made in is missing"));
  EXPECT_THAT(refusal(host_.at("file/x")), HasSubstr("not a folder"));
  EXPECT_TRUE(
      open_destinations({{"/out", host_.at("real/")}, {"/out", host_.at("new//")}, {"/out", "."}, {"/out", ".."}}));
  EXPECT_FALSE(host_.has("new"));  // made when the first file goes in
}

TEST_F(CollectTest, TheFolderThatWasThereAtTheStartIsMeant) {
  out_.write("file", "x");
  host_.make_folder("results");
  host_.make_folder("elsewhere");
  spec_.collect = {{"/out", host_.at("results")}};
  auto destinations = open_destinations(spec_.collect);
  ASSERT_TRUE(destinations);
  std::filesystem::rename(host_.at("results"), host_.at("moved"));
  host_.link("elsewhere", "results");
  collect_files(spec_, {{"/out", out_.fd()}}, *destinations, -1);
  EXPECT_TRUE(host_.has("moved/file"));
  EXPECT_FALSE(host_.has("elsewhere/file"));
}

TEST_F(CollectTest, StopsWhenTold) {
  const auto stop = make_pipe();
  ASSERT_TRUE(stop && write_all(stop->write.get(), "x"));
  out_.write("a", "x");
  out_.write("b", "x");
  spec_.collect = {{"/out", host_.at("results")}};
  auto destinations = open_destinations(spec_.collect);
  ASSERT_TRUE(destinations);
  const Collected collected = collect_files(spec_, {{"/out", out_.fd()}}, *destinations, stop->read.get());
  EXPECT_THAT(saved_paths(), IsEmpty());
  EXPECT_THAT(skipped(collected), ElementsAre("/out/a: stopped by the caller; collecting ended here"));
  EXPECT_TRUE(collected.truncated);
}

}  // namespace
}  // namespace belljar
