// Workspaces, what is captured of them, the store and applying: the parts that need no sandbox.
#include "files/workspace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "files/apply.h"
#include "files/capture.h"
#include "files/change_store.h"
#include "files/test_folder.h"
#include "spec/errors.h"

namespace belljar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kMany = 10000;

// A workspace on the host, the folder that a sandbox would have left, and a store.
class WorkspaceTest : public testing::Test {
 protected:
  WorkspaceTest() {
    host_.write("one", "one\n");
    host_.make_folder("sub/deep");
    host_.write("sub/deep/two", "two\n");
    host_.link("one", "link");
  }

  Workspace before() const {
    auto opened = open_workspace(host_.path(), kMany);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }

  Captured capture(WorkspaceView view) {
    return capture_changes(spec_, before_, inside_.fd(), view, contents_.fd(), -1);
  }

  // "added a", "deleted b/c" ...
  static std::vector<std::string> lines(const Captured& captured) {
    std::vector<std::string> lines;
    for (const Change& change : captured.changeset.changes) {
      lines.push_back(std::string(file_change_name(change.change)) + " " + change.path);
    }
    return lines;
  }

  void white_out(const std::string& name) const {
    ASSERT_EQ(::mknodat(inside_.fd(), name.c_str(), S_IFCHR, makedev(0, 0)), 0) << name;
  }

  // Keeps the captured changes in a store, and takes them out of it.
  KeptChangeset keep(WorkspaceView view) {
    store_.emplace(*ChangeStore::open(state_.at("changes")));
    auto incoming = store_->begin();
    EXPECT_TRUE(incoming);
    const Captured captured = capture_changes(spec_, before_, inside_.fd(), view, incoming->contents_fd(), -1);
    const auto id = incoming->publish(captured.changeset);
    EXPECT_TRUE(id);
    return take(*id);
  }

  KeptChangeset take(const std::string& id) const {
    auto kept = store_->take(id, ChangesetUse::working);
    EXPECT_TRUE(kept) << kept.error().message;
    return std::move(*kept);
  }

  TestFolder host_;
  TestFolder inside_;
  TestFolder contents_;
  TestFolder state_;
  SandboxSpec spec_;
  Workspace before_;
  std::optional<ChangeStore> store_;
};

TEST_F(WorkspaceTest, RemembersWhatIsThere) {
  const Workspace workspace = before();
  EXPECT_THAT(workspace.root.children, testing::SizeIs(3));
  EXPECT_EQ(workspace.root.find("link")->link_target, "one");
  EXPECT_EQ(workspace.root.find("sub")->find("deep")->find("two")->stamp.size, 4U);
  EXPECT_EQ(workspace.root.find("nothing"), nullptr);
  EXPECT_EQ(open_workspace(host_.path(), 3).error().code, ErrorCode::bad_workspace);
  EXPECT_THAT(open_workspace(host_.at("one"), kMany).error().message, HasSubstr("not a folder"));
  EXPECT_THAT(open_workspace(host_.at("link"), kMany).error().message, HasSubstr("symbolic link"));
  std::string deep = "d";
  for (int i = 0; i < 110; ++i) deep += "/d";
  host_.make_folder(deep);
  EXPECT_THAT(open_workspace(host_.path(), kMany).error().message, HasSubstr("deep inside each other"));
}

TEST_F(WorkspaceTest, AnOverlayShowsWhatDiffers) {
  before_ = before();
  inside_.write("one", "changed");
  inside_.write("new", "new");
  inside_.make_folder("sub");
  white_out("sub/deep");
  white_out("never there");
  const Captured captured = capture(WorkspaceView::overlay);
  EXPECT_THAT(lines(captured), ElementsAre("added new", "modified one", "deleted sub/deep", "deleted sub/deep/two"));
  EXPECT_FALSE(captured.truncated);
  EXPECT_EQ(contents_.read(captured.changeset.changes[0].sha256), "new");
}

TEST_F(WorkspaceTest, AnOpaqueFolderCoversWhatWasThere) {
  before_ = before();
  inside_.make_folder("sub");
  inside_.write("sub/new", "x");
  if (::setxattr(inside_.at("sub").c_str(), "user.overlay.opaque", "x", 1, 0) != 0) {
    GTEST_SKIP() << "NOT COVERED: opaque folders: no user attributes in " << inside_.path();
  }
  EXPECT_THAT(lines(capture(WorkspaceView::overlay)), ElementsAre("added sub/new")) << "another mark";
  ASSERT_EQ(::setxattr(inside_.at("sub").c_str(), "user.overlay.opaque", "y", 1, 0), 0);
  EXPECT_THAT(lines(capture(WorkspaceView::overlay)),
              ElementsAre("deleted sub/deep", "deleted sub/deep/two", "added sub/new"));
}

TEST_F(WorkspaceTest, InACopyWhatIsMissingWasDeleted) {
  before_ = before();
  inside_.write("one", "one\n");
  inside_.link("two", "link");
  inside_.make_folder("sub");
  white_out("dev");
  const Captured captured = capture(WorkspaceView::copy);
  EXPECT_THAT(lines(captured), ElementsAre("modified link", "deleted sub/deep", "deleted sub/deep/two"));
  ASSERT_EQ(captured.skipped.size(), 1U);
  EXPECT_EQ(captured.skipped[0].reason, "a device");
}

TEST_F(WorkspaceTest, ContentThatIsTheSameIsNoChange) {
  before_ = before();
  inside_.write("one", "one\n");
  EXPECT_THAT(lines(capture(WorkspaceView::overlay)), IsEmpty());
  inside_.write("one", "two\n");
  EXPECT_THAT(lines(capture(WorkspaceView::overlay)), ElementsAre("modified one"));
  inside_.write("one", "one\n");
  ASSERT_EQ(::fchmodat(inside_.fd(), "one", 0755, 0), 0);
  EXPECT_THAT(lines(capture(WorkspaceView::overlay)), ElementsAre("modified one"));
}

TEST_F(WorkspaceTest, BoundsHold) {
  before_ = before();
  spec_.limits.collect_file.value = 10;
  spec_.limits.collect_size.value = 15;
  inside_.write("a", "0123456789");
  inside_.write("b", "01234567890");
  inside_.write("c", "0123456789");
  const Captured captured = capture(WorkspaceView::overlay);
  EXPECT_THAT(lines(captured), ElementsAre("added a"));
  ASSERT_EQ(captured.skipped.size(), 2U);
  EXPECT_THAT(captured.skipped[0].reason, HasSubstr("--collect-file-size"));
  EXPECT_THAT(captured.skipped[1].reason, HasSubstr("--collect-size"));
  EXPECT_TRUE(captured.truncated);
}

TEST_F(WorkspaceTest, GitFoldersAreKnownInTheMergedView) {
  host_.make_folder("bare/objects");
  before_ = before();
  inside_.make_folder("bare");
  inside_.write("bare/HEAD", "x");
  inside_.write("bare/config", "x");
  const Captured captured = capture(WorkspaceView::overlay);
  ASSERT_THAT(lines(captured), ElementsAre("added bare/HEAD", "added bare/config"));
  EXPECT_TRUE(captured.changeset.changes[1].in_git_folder);
}

TEST_F(WorkspaceTest, AppliesAndForgets) {
  before_ = before();
  inside_.write("one", "changed");
  inside_.write("run", "x", 0755);
  white_out("sub");
  KeptChangeset kept = keep(WorkspaceView::overlay);
  const auto applied = apply_changes(kept, {});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_THAT(applied->left_out, IsEmpty());
  EXPECT_THAT(kept.changeset.changes, IsEmpty());
  EXPECT_EQ(host_.read("one"), "changed");
  EXPECT_FALSE(host_.has("sub"));
  ASSERT_TRUE(store_->put_back(kept));
  EXPECT_THAT(store_->list(), IsEmpty());
}

TEST_F(WorkspaceTest, ApplyingTwiceIsApplyingOnce) {
  before_ = before();
  inside_.write("one", "changed");
  inside_.write("new", "new");
  white_out("sub");
  KeptChangeset kept = keep(WorkspaceView::overlay);
  const KeptChangeset again = {.id = kept.id, .changeset = kept.changeset};
  ASSERT_TRUE(apply_changes(kept, {}));
  kept.changeset = again.changeset;
  const auto applied = apply_changes(kept, {});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_THAT(applied->left_out, IsEmpty());
}

TEST_F(WorkspaceTest, LinksOnTheHostAreNotFollowed) {
  before_ = before();
  inside_.make_folder("sub");
  inside_.write("sub/new", "x");
  KeptChangeset kept = keep(WorkspaceView::overlay);
  std::filesystem::rename(host_.at("sub"), host_.at("real"));
  host_.link("real", "sub");
  EXPECT_FALSE(apply_changes(kept, {}));
  EXPECT_FALSE(host_.has("real/new"));
}

TEST_F(WorkspaceTest, ProtectedPathsAndLinksMustBeNamed) {
  before_ = before();
  inside_.make_folder(".git/hooks");
  inside_.write(".git/hooks/x", "x");
  inside_.write("plain", "x");
  inside_.link("/etc/passwd", "l");
  KeptChangeset kept = keep(WorkspaceView::overlay);
  const auto applied = apply_changes(kept, {});
  ASSERT_TRUE(applied);
  ASSERT_EQ(applied->left_out.size(), 2U);  // the link, and one for the folder with the file in it
  EXPECT_EQ(applied->left_out[0].path, ".git/hooks");
  EXPECT_EQ(applied->left_out[0].changes, 2U);
  EXPECT_EQ(applied->left_out[1].path, "l");
  EXPECT_TRUE(host_.has("plain"));
  EXPECT_FALSE(host_.has(".git/hooks") || host_.has("l"));
  const std::vector<std::string> above = {".git"};
  ASSERT_TRUE(apply_changes(kept, above));
  EXPECT_FALSE(host_.has(".git/hooks")) << "naming what is above does not name it";
  const std::vector<std::string> named = {".git/hooks", "l"};
  ASSERT_TRUE(apply_changes(kept, named));
  EXPECT_TRUE(host_.has(".git/hooks/x") && host_.has("l"));
}

TEST_F(WorkspaceTest, AFolderThatIsLeftOutIsOneRow) {
  host_.make_folder("old/c");
  for (const char* const name : {"old/a", "old/b", "old/c/d"}) host_.write(name, "x");
  before_ = before();
  for (const char* const name : {".vscode/0", ".vscode/1", ".vscode/2"}) inside_.make_folder(name);
  for (int i = 0; i < 20; ++i) inside_.write(fmt::format(".vscode/{}/{}.json", i % 3, i), "x");
  inside_.write(".vscode-notes", "x");
  inside_.link("elsewhere", "old");
  KeptChangeset kept = keep(WorkspaceView::overlay);
  const std::size_t changes = kept.changeset.changes.size();
  const auto applied = apply_changes(kept, {});
  ASSERT_TRUE(applied) << applied.error().message;
  std::vector<std::string> rows;
  for (const LeftOut& row : applied->left_out) rows.push_back(fmt::format("{} {}", row.path, row.changes));
  // What the link would replace: the folder old, what was in it, and the folder in it.
  EXPECT_THAT(rows, ElementsAre(".vscode 24", "old 1", "old 5"));
  EXPECT_EQ(applied->applied.size(), 1U);
  EXPECT_EQ(kept.changeset.changes.size(), changes - 1);
}

// As many folders inside each other as `depth`, the last with a file in it.
void make_deep(TestFolder& folder, unsigned depth) {
  std::string path;
  for (unsigned i = 0; i < depth; ++i) path += "d/";
  folder.make_folder(path.substr(0, path.size() - 1));
  folder.write(path + "bottom", "x");
}

TEST_F(WorkspaceTest, WhatIsKeptIsNoDeeperThanAWorkspaceMayBe) {
  before_ = before();
  make_deep(inside_, kWorkspaceDepthMax);
  EXPECT_EQ(capture(WorkspaceView::overlay).changeset.changes.size(), kWorkspaceDepthMax + 1);
  make_deep(inside_, kWorkspaceDepthMax + 3);
  KeptChangeset kept = keep(WorkspaceView::overlay);
  EXPECT_EQ(kept.changeset.changes.size(), kWorkspaceDepthMax + 1);
  const Captured captured = capture(WorkspaceView::overlay);
  ASSERT_EQ(captured.skipped.size(), 1U);
  EXPECT_EQ(captured.skipped[0].reason, "more than 100 folders deep");
  ASSERT_TRUE(apply_changes(kept, {}));
  before_ = before();  // and may be a workspace again
  make_deep(host_, kWorkspaceDepthMax + 1);
  const auto refused = open_workspace(host_.path(), 1000);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("folders are more than 100 deep inside each other"));
}

TEST_F(WorkspaceTest, LeftoversAreCleared) {
  before_ = before();
  inside_.make_folder("sub");
  inside_.write("sub/new", "x");
  KeptChangeset kept = keep(WorkspaceView::overlay);
  host_.write("sub/.belljar-" + kept.id + ".part", "half");
  host_.write("sub/.belljar-other.part", "not ours");
  ASSERT_TRUE(apply_changes(kept, {}));
  EXPECT_FALSE(host_.has("sub/.belljar-" + kept.id + ".part"));
  EXPECT_TRUE(host_.has("sub/.belljar-other.part"));
}

TEST_F(WorkspaceTest, TheStoreClearsWhatIsAbandoned) {
  before_ = before();
  inside_.write("new", "x");
  const std::string id = keep(WorkspaceView::overlay).id;
  auto in_work = store_->begin();
  ASSERT_TRUE(in_work);
  state_.make_folder("changes/new-12345678/contents");
  state_.make_folder("changes/old-12345678");
  const auto opened = ChangeStore::open(state_.at("changes"));
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->abandoned_count(), 2U);
  EXPECT_FALSE(state_.has("changes/new-12345678") || state_.has("changes/old-12345678"));
  EXPECT_TRUE(in_work->publish(Changeset{.workspace = "/"})) << "what is held is left alone";
  EXPECT_EQ(store_->list().size(), 2U);
}

TEST_F(WorkspaceTest, ASetIsForOneAtATime) {
  before_ = before();
  inside_.write("new", "x");
  const KeptChangeset kept = keep(WorkspaceView::overlay);
  EXPECT_THAT(store_->take(kept.id, ChangesetUse::reading).error().message, HasSubstr("another belljar"));
  ASSERT_TRUE(store_->remove(kept));
  EXPECT_EQ(store_->take(kept.id, ChangesetUse::reading).error().code, ErrorCode::no_changes);
  for (const char* const id : {"", "..", "new-12345678", "0123456", "0123456G"}) {
    EXPECT_EQ(store_->take(id, ChangesetUse::reading).error().code, ErrorCode::no_changes) << id;
  }
}

TEST_F(WorkspaceTest, ADamagedSetIsSaid) {
  before_ = before();
  inside_.write("new", "x");
  const std::string id = keep(WorkspaceView::overlay).id;
  state_.write("changes/" + id + "/changes.json", "{");
  EXPECT_EQ(store_->take(id, ChangesetUse::reading).error().code, ErrorCode::bad_changes);
  const std::vector<ListedChangeset> listed = store_->list();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].id, id);
  EXPECT_NE(listed[0].damage, "");
  {
    const auto kept = store_->take(id, ChangesetUse::discarding);
    ASSERT_TRUE(kept) << kept.error().message;
    EXPECT_TRUE(store_->remove(*kept));
  }
  EXPECT_THAT(store_->list(), IsEmpty());
}

TEST(ChangeStoreFolder, FollowsTheEnvironment) {
  const auto with_state = [](const char* name) -> const char* {
    return std::string_view(name) == "XDG_STATE_HOME" ? "/s" : nullptr;
  };
  const auto with_home = [](const char* name) -> const char* {
    return std::string_view(name) == "HOME" ? "/h" : "relative";
  };
  EXPECT_EQ(change_store_folder(with_state), "/s/belljar/changes");
  EXPECT_EQ(change_store_folder(with_home), "/h/.local/state/belljar/changes");
  EXPECT_FALSE(change_store_folder([](const char*) -> const char* { return nullptr; }));
}

}  // namespace
}  // namespace belljar
