#include "image/image_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "spec/errors.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kTreeA = std::string(64, 'a');
const std::string kTreeB = std::string(64, 'b');

class ImageStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "image_store.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "deep" / "store";
    auto opened = ImageStore::open(path_, MissingStore::is_made);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    store_.emplace(std::move(*opened));
  }
  void TearDown() override { fs::remove_all(folder_); }

  // What load_image() does with the store.
  void load(const std::string& name, const std::string& tree) {
    const auto loading = store_->lock_loading();
    ASSERT_TRUE(loading.has_value());
    const auto building = store_->make_building_folder();
    ASSERT_TRUE(building.has_value());
    std::ofstream(fs::path(*building) / "root" / "file") << tree;
    const auto held = store_->lock();
    ASSERT_TRUE(held.has_value());
    ASSERT_TRUE(store_->publish_tree(tree, {.counts = {.entries = 1, .bytes = 64}, .diff_ids = {tree}}));
    ASSERT_TRUE(store_->write_name(name, record(tree)));
    store_->clear_building();
  }

  static ImageRecord record(const std::string& tree) {
    ImageRecord record;
    record.tree = tree;
    return record;
  }

  bool has_tree(const std::string& tree) const { return fs::exists(path_ / "trees" / tree); }

  fs::path folder_;
  fs::path path_;
  std::optional<ImageStore> store_;
};

TEST_F(ImageStoreTest, KeepsAndFindsImages) {
  load("one", kTreeA);
  const auto image = store_->open_image("one");
  ASSERT_TRUE(image.has_value()) << image.error().message;
  EXPECT_EQ(image->record.tree, kTreeA);
  EXPECT_TRUE(fs::exists(fs::path(image->root_path) / "file"));
  EXPECT_EQ(::faccessat(image->root.get(), "file", F_OK, 0), 0);
  EXPECT_EQ(store_->tree_facts(kTreeA)->counts.bytes, 64U);
  EXPECT_EQ(store_->tree_facts(kTreeA)->diff_ids, std::vector{kTreeA});
  ASSERT_EQ(store_->list().size(), 1U);
  EXPECT_TRUE(store_->list()[0].is_in_use);
}

TEST_F(ImageStoreTest, IsClosedToOthers) {
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  fs::permissions(path_, fs::perms(0777));
  const auto refused = ImageStore::open(path_, MissingStore::is_made);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("can be written by others"));
}

TEST_F(ImageStoreTest, RefusesALinkInItsPlace) {
  fs::create_directory_symlink(path_, folder_ / "link");
  const auto refused = ImageStore::open(folder_ / "link", MissingStore::is_made);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("a link is not followed"));
}

TEST_F(ImageStoreTest, ListsTheKnownNamesForAnUnknownOne) {
  const auto none = store_->open_image("nope");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::unknown_image);
  EXPECT_THAT(none.error().message, HasSubstr("none is loaded yet"));
  load("two", kTreeA);
  load("one", kTreeA);
  EXPECT_THAT(store_->open_image("nope").error().message, HasSubstr("there are: one, two"));
  EXPECT_THAT(store_->open_image("../names/one").error().message, HasSubstr("No such file"));
  EXPECT_EQ(store_->remove("nope").error().code, ErrorCode::unknown_image);
  EXPECT_EQ(store_->remove("..").error().code, ErrorCode::unknown_image);
}

TEST_F(ImageStoreTest, MissingStoreIsEmpty) {
  const auto store = ImageStore::open(folder_ / "none", MissingStore::is_empty);
  ASSERT_TRUE(store.has_value());
  EXPECT_TRUE(store->list().empty());
  EXPECT_EQ(store->open_image("x").error().code, ErrorCode::unknown_image);
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

TEST_F(ImageStoreTest, RemovesATreeWithItsLastName) {
  load("one", kTreeA);
  load("two", kTreeA);
  ASSERT_TRUE(store_->remove("one"));
  EXPECT_TRUE(has_tree(kTreeA));
  ASSERT_TRUE(store_->remove("two"));
  EXPECT_FALSE(has_tree(kTreeA));
  EXPECT_TRUE(fs::is_empty(path_ / "building"));
}

TEST_F(ImageStoreTest, KeepsWhatIsInUse) {
  load("one", kTreeA);
  {
    const auto image = store_->open_image("one");
    ASSERT_TRUE(image.has_value());
    const auto refused = store_->remove("one");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::image_in_use);
    EXPECT_TRUE(store_->open_image("one").has_value());
    load("two", kTreeA);
    EXPECT_TRUE(store_->remove("two").has_value());  // the tree stays for the other name
    load("one", kTreeB);                             // replaced while it is in use
    EXPECT_TRUE(has_tree(kTreeA));
    EXPECT_EQ(store_->collect_garbage().value_or(99), 0U);
    EXPECT_TRUE(has_tree(kTreeA));
  }
  EXPECT_EQ(store_->collect_garbage().value_or(0), 1U);
  EXPECT_FALSE(has_tree(kTreeA));
  EXPECT_TRUE(store_->remove("one").has_value());
}

TEST_F(ImageStoreTest, KeepsANameInUseThoughAnotherSharesItsTree) {
  load("one", kTreeA);
  load("two", kTreeA);
  {
    const auto image = store_->open_image("one");
    ASSERT_TRUE(image.has_value());
    const auto refused = store_->remove("one");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::image_in_use);
    EXPECT_TRUE(store_->find("one")->is_in_use);
    EXPECT_FALSE(store_->find("two")->is_in_use);
    EXPECT_TRUE(store_->remove("two"));
  }
  EXPECT_TRUE(store_->remove("one"));
  EXPECT_FALSE(has_tree(kTreeA));
}

TEST_F(ImageStoreTest, GarbageIsCountedOnceNobodyLoads) {
  auto loading = store_->lock_loading();
  ASSERT_TRUE(loading.has_value() && store_->make_building_folder().has_value());
  std::uint64_t removed = 99;
  std::thread gc([&] {
    auto other = ImageStore::open(path_, MissingStore::is_made);
    removed = other->collect_garbage().value_or(99);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  fs::remove_all(path_ / "building" / "new");  // as a load that ends well
  loading->reset();
  gc.join();
  EXPECT_EQ(removed, 0U);
}

TEST_F(ImageStoreTest, ReplacesAName) {
  load("one", kTreeA);
  load("one", kTreeB);
  EXPECT_FALSE(has_tree(kTreeA));
  EXPECT_EQ(store_->open_image("one")->record.tree, kTreeB);
}

TEST_F(ImageStoreTest, PublishesATreeOnce) {
  load("one", kTreeA);
  load("two", kTreeA);
  EXPECT_EQ(std::distance(fs::directory_iterator(path_ / "trees"), fs::directory_iterator()), 1);
}

TEST_F(ImageStoreTest, ForgetsHalfLoadedTrees) {
  {
    const auto loading = store_->lock_loading();
    const auto building = store_->make_building_folder();
    ASSERT_TRUE(building.has_value());
    std::ofstream(fs::path(*building) / "root" / "half") << "x";
  }
  EXPECT_EQ(store_->list().size(), 0U);
  EXPECT_EQ(store_->collect_garbage().value_or(0), 1U);
  EXPECT_TRUE(fs::is_empty(path_ / "building"));
}

TEST_F(ImageStoreTest, RemovesFoldersThatKeepTheirOwnerOut) {
  load("one", kTreeA);
  const fs::path root = path_ / "trees" / kTreeA / "root";
  fs::create_directories(root / "closed" / "inner");
  fs::permissions(root / "closed" / "inner", fs::perms::none);
  fs::permissions(root / "closed", fs::perms::none);
  ASSERT_TRUE(store_->remove("one"));
  EXPECT_TRUE(fs::is_empty(path_ / "building"));
}

TEST_F(ImageStoreTest, TellsDamage) {
  load("one", kTreeA);
  fs::remove_all(path_ / "trees" / kTreeA);
  EXPECT_THAT(store_->open_image("one").error().message, HasSubstr("load it again"));
  EXPECT_THAT(store_->find("one")->damage, HasSubstr("load the image again"));
  for (const char* const record : {"{}", "{bad"}) {
    std::ofstream(path_ / "names" / "one") << record;
    const auto refused = store_->open_image("one");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::bad_image);
    EXPECT_THAT(refused.error().message, HasSubstr("names/one is no record of an image ("));
    EXPECT_THAT(refused.error().message, HasSubstr("); load the image again"));
    ASSERT_EQ(store_->list().size(), 1U);
    EXPECT_EQ(store_->list()[0].damage, refused.error().message);
  }
  EXPECT_TRUE(store_->remove("one").has_value());
  EXPECT_TRUE(store_->list().empty());
}

TEST_F(ImageStoreTest, NamesImagesByTheirPath) {
  const std::string file = folder_ / "image.tar";
  std::ofstream(file) << "one";
  const auto missing = store_->open_image(file);
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, HasSubstr("not loaded"));
  const auto identity = source_identity(file);
  ASSERT_TRUE(identity.has_value());
  load("one", kTreeA);
  ImageRecord record = ImageStoreTest::record(kTreeA);
  record.identity = identity->state;
  record.source = file;
  ASSERT_TRUE(store_->write_path(*identity, record));
  EXPECT_TRUE(store_->open_image(file).has_value());
  EXPECT_EQ(store_->collect_garbage().value_or(99), 0U);
  ASSERT_TRUE(store_->remove("one"));
  EXPECT_TRUE(has_tree(kTreeA));  // the path still leads to it
  std::ofstream(file) << "another";
  EXPECT_FALSE(store_->open_image(file).has_value());
  EXPECT_EQ(store_->collect_garbage().value_or(0), 2U);
  EXPECT_FALSE(has_tree(kTreeA));
}

TEST_F(ImageStoreTest, ListsAndRemovesImagesByTheirPath) {
  const std::string file = folder_ / "image.tar";
  const auto write = [&](const std::string& tree) {
    fs::remove(file);
    std::ofstream(file + ".new") << tree;
    fs::rename(file + ".new", file);  // another inode
    load("name", tree);
    const auto identity = source_identity(file);
    ASSERT_TRUE(identity.has_value());
    ImageRecord record = ImageStoreTest::record(tree);
    record.identity = identity->state;
    record.source = file;
    ASSERT_TRUE(store_->write_path(*identity, record));
  };
  write(kTreeA);
  write(kTreeB);
  EXPECT_FALSE(has_tree(kTreeA));
  const auto images = store_->list();
  ASSERT_EQ(images.size(), 2U);
  EXPECT_EQ(images[0].name, "name");
  EXPECT_EQ(images[1].name, file);
  EXPECT_EQ(store_->find((folder_ / "deep" / ".." / "image.tar").string())->record.tree, kTreeB);
  {
    const auto image = store_->open_image(file);
    ASSERT_TRUE(image.has_value());
    EXPECT_EQ(store_->remove(file).error().code, ErrorCode::image_in_use);
  }
  fs::remove(file);
  EXPECT_TRUE(store_->remove(file));
  EXPECT_EQ(store_->remove(file).error().code, ErrorCode::unknown_image);
  ASSERT_TRUE(store_->remove("name"));
  EXPECT_FALSE(has_tree(kTreeB));
}

TEST_F(ImageStoreTest, TakesNoPlainFolderByPath) {
  const auto identity = source_identity(folder_);
  ASSERT_FALSE(identity.has_value());
  EXPECT_THAT(identity.error().message, HasSubstr("belljar image load NAME FOLDER"));
  EXPECT_FALSE(source_identity("/dev/null").has_value());
  EXPECT_FALSE(source_identity(folder_ / "none").has_value());
  std::ofstream(folder_ / "oci-layout") << "{}";
  std::ofstream(folder_ / "index.json") << "{}";
  EXPECT_TRUE(source_identity(folder_).has_value());
}

}  // namespace
}  // namespace belljar
