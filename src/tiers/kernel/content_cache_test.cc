#include "tiers/kernel/content_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "kernel/mm/text_patch.h"
#include "tiers/kernel/cache_index.h"
#include "tiers/kernel/cache_keeper.h"

namespace belljar::content_cache {
namespace {

namespace fs = std::filesystem;

class ContentCache : public testing::Test {
 protected:
  ContentCache() {
    char name[] = "/tmp/contents-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~ContentCache() override { fs::remove_all(folder_); }

  OpenedCache open(const char* what = "image") { return open_cache_in(folder_ + "/kernel", what); }
  Filler filler(const std::string& place) {
    const std::string folders[] = {place};
    return std::move(*Filler::open(open().writable, folders));
  }
  std::vector<fs::path> files() {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_ + "/kernel")) found.push_back(entry.path());
    return found;
  }
  std::string write(const char* name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }
  static Fd file(const std::string& path) { return std::move(*open_at(AT_FDCWD, path.c_str(), O_RDONLY)); }
  static Key key(const Fd& file) {
    struct stat status{};
    EXPECT_EQ(::fstat(file.get(), &status), 0);
    return key_of(status);
  }
  std::optional<Record> find(const Fd& file) { return Index::map(open().readable.get(), false)->find(key(file)); }
  std::string bytes(std::uint64_t offset, std::size_t size) {
    std::string text(size, '?');
    EXPECT_EQ(::pread(open().readable.get(), text.data(), size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
    return text;
  }
  // Until files that were just written may be kept.
  static void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(3100)); }

  std::string folder_;
};

ino_t inode_of(const Fd& file) {
  struct stat status{};
  EXPECT_EQ(::fstat(file.get(), &status), 0);
  return status.st_ino;
}

TEST_F(ContentCache, IsOneFileForOneImage) {
  const OpenedCache first = open();
  ASSERT_TRUE(first.writable.is_open() && first.readable.is_open());
  EXPECT_EQ(inode_of(first.writable), inode_of(open().writable));
  EXPECT_EQ(inode_of(first.writable), inode_of(first.readable));
  EXPECT_NE(inode_of(first.writable), inode_of(open("another").writable));
  EXPECT_EQ(::write(first.readable.get(), "x", 1), -1);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, first.readable.get(), 0), MAP_FAILED);
}

TEST_F(ContentCache, BeginsAnewWhereTheFileIsDamaged) {
  open();
  const fs::path path = files().at(0);
  const auto is_replaced_after = [&](auto damage) {
    const ino_t before = inode_of(open().writable);
    // Held open, so that the new one can't have its number.
    const Fd held = file(path);
    damage();
    const OpenedCache after = open();
    return after.writable.is_open() && inode_of(after.writable) != before && fs::file_size(path) == kBudget;
  };
  EXPECT_FALSE(is_replaced_after([] {}));
  EXPECT_TRUE(is_replaced_after([&] { fs::resize_file(path, 4096); }));
  EXPECT_TRUE(is_replaced_after([&] { fs::resize_file(path, kBudget + 4096); }));
  EXPECT_TRUE(is_replaced_after([&] { ASSERT_EQ(::pwrite(open().writable.get(), "x", 1, 0), 1); }));
  EXPECT_TRUE(is_replaced_after([&] { fs::permissions(path, fs::perms::all); }));
  EXPECT_TRUE(is_replaced_after([&] {
    fs::rename(path, folder_ + "/aside");
    fs::create_symlink(folder_ + "/aside", path);
  }));
}

TEST_F(ContentCache, KeepsTheNewestFiles) {
  for (const char* what : {"a", "b", "c", "d", "e", "f"}) open(what);
  EXPECT_EQ(files().size(), 4U);
}

TEST_F(ContentCache, KeepsContents) {
  Filler fill = filler("/usr");
  const Fd source = file("/usr/bin/env");
  EXPECT_FALSE(find(source));
  ASSERT_TRUE(fill.put(source.get()));
  const auto found = find(source);
  ASSERT_TRUE(found);
  std::ifstream stream("/usr/bin/env", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(bytes(found->offset, whole.size()), whole);
  EXPECT_EQ(found->offset % 4096, 0U);
  ASSERT_TRUE(fill.put(source.get()));
  EXPECT_EQ(find(source)->offset, found->offset);
}

TEST_F(ContentCache, PatchesSystemCalls) {
  Filler fill = filler("/usr");
  const Fd source = file("/usr/lib/x86_64-linux-gnu/libc.so.6");
  ASSERT_TRUE(fill.put(source.get()));
  const PatchedText text = find(source)->text;
  ASSERT_GT(text.size, 0U);
  EXPECT_GT(text.trampoline_size, 0U);
  const std::string plain = bytes(text.source, text.size);
  const std::string patched = bytes(text.offset + kernel::kTrampolineSize, text.size);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) changed += plain[i] != patched[i] ? 1 : 0;
  EXPECT_GT(changed, 1000U);
  EXPECT_LT(changed, 5000U);
}

TEST_F(ContentCache, SeesThatASourceChanged) {
  const std::string path = write("file", "before");
  Filler fill = filler(folder_);
  EXPECT_EQ(fill.put(file(path).get()).error().value, EAGAIN);
  settle();
  ASSERT_TRUE(fill.put(file(path).get()));
  EXPECT_EQ(bytes(find(file(path))->offset, 6), "before");
  write("file", "after!");
  EXPECT_FALSE(find(file(path)));
}

TEST_F(ContentCache, TakesFilesOfTheImageAlone) {
  Filler fill = filler("/proc");
  EXPECT_EQ(fill.put(file("/usr/bin/env").get()).error().value, EXDEV);
  EXPECT_EQ(fill.put(file("/proc").get()).error().value, EXDEV);
}

TEST_F(ContentCache, HasABudget) {
  const OpenedCache cache = open();
  Index index = *Index::map(cache.writable.get(), true);
  std::uint64_t last = 0;
  while (const auto taken = index.take(kFileMost)) {
    EXPECT_GE(*taken, std::max(last, kContentsBegin));
    EXPECT_LE(*taken + kFileMost, kBudget);
    last = *taken + kFileMost;
  }
  EXPECT_GT(last, kBudget - kFileMost - kContentsBegin);
  EXPECT_NE(inode_of(open().writable), inode_of(cache.writable));
}

TEST_F(ContentCache, FindsNothingDamaged) {
  const Fd source = file("/usr/bin/env");
  const OpenedCache cache = open();
  Index index = *Index::map(cache.writable.get(), true);
  Record record;
  record.key = key(source);
  record.offset = *index.take(record.key.size);
  ASSERT_TRUE(index.add(record));
  EXPECT_TRUE(find(source));
  void* const mapped = ::mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED, cache.writable.get(), 0);
  auto& header = *static_cast<Header*>(mapped);
  auto* const entry = std::ranges::find_if(header.entries, [](const Entry& each) { return each.is_there != 0; });
  entry->record.offset += 4096;
  EXPECT_FALSE(find(source));
  ::munmap(mapped, sizeof(Header));
}

TEST_F(ContentCache, RefusesPlacesOutside) {
  const Fd source = file("/usr/bin/env");
  const OpenedCache cache = open();
  Index index = *Index::map(cache.writable.get(), true);
  for (const std::uint64_t offset : {std::uint64_t{0}, kContentsBegin + 1, kBudget, ~std::uint64_t{4095}}) {
    Record record;
    record.key = key(source);
    record.offset = offset;
    ASSERT_TRUE(index.add(record));
    EXPECT_FALSE(find(source)) << offset;
  }
}

TEST_F(ContentCache, ManyFillIt) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator("/usr/bin")) {
    if (entry.is_regular_file() && !entry.is_symlink() && entry.file_size() < 100'000) paths.push_back(entry.path());
    if (paths.size() == 100) break;
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Filler fill = filler("/usr");
      for (const std::string& path : paths) (void)fill.put(file(path).get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(stream), {}};
    const auto found = find(file(path));
    ASSERT_TRUE(found) << path;
    EXPECT_EQ(bytes(found->offset, whole.size()), whole) << path;
  }
}

TEST_F(ContentCache, KeeperIsAProcess) {
  const std::string folders[] = {"/usr"};
  Keeper keeper;
  EXPECT_FALSE(keeper.keep(file("/usr/bin/env").get()));
  keeper.start(open().writable, folders);
  EXPECT_TRUE(keeper.keep(file("/usr/bin/env").get()));
  EXPECT_TRUE(find(file("/usr/bin/env")));
  EXPECT_FALSE(keeper.keep(file("/proc/self/status").get()));
  keeper.stop();
  EXPECT_FALSE(keeper.keep(file("/usr/bin/env").get()));
}

}  // namespace
}  // namespace belljar::content_cache
