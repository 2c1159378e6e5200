#include "tiers/wasm/module_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

namespace belljar::wasm {
namespace {

class Cache : public testing::Test {
 protected:
  Cache() {
    char name[] = "/tmp/modules-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~Cache() override { std::filesystem::remove_all(folder_); }

  ModuleCache open() { return std::move(*ModuleCache::open_at(folder_ + "/wasm")); }

  std::string read(const std::string& key) {
    std::ifstream file(folder_ + "/wasm/" + key, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  long count() {
    const std::filesystem::directory_iterator all(folder_ + "/wasm");
    return std::distance(begin(all), end(all));
  }

  void write(const std::string& key, const std::string& text) {
    std::filesystem::remove(folder_ + "/wasm/" + key);
    std::ofstream(folder_ + "/wasm/" + key, std::ios::binary) << text;
  }

  std::string folder_;
};

TEST_F(Cache, FindsWhatWasPut) {
  const ModuleCache cache = open();
  EXPECT_FALSE(cache.find("a"));
  ASSERT_TRUE(cache.put("a", "compiled"));
  const auto found = cache.find("a");
  ASSERT_TRUE(found);
  EXPECT_TRUE(read("a").starts_with("compiled"));
  EXPECT_EQ(found->path, folder_ + "/wasm/a");
}

TEST_F(Cache, KeepsWhatIsThereAndWhole) {
  const ModuleCache cache = open();
  ASSERT_TRUE(cache.put("a", "compiled"));
  ASSERT_TRUE(cache.put("a", "other"));
  EXPECT_TRUE(read("a").starts_with("compiled"));
  write("a", "damaged");
  ASSERT_TRUE(cache.put("a", "other"));
  EXPECT_TRUE(read("a").starts_with("other"));
}

// What comes back is mounted by its name, too.
TEST_F(Cache, GivesManyAtOnceOneEntry) {
  constexpr int kRounds = 50;
  constexpr int kThreads = 8;
  const ModuleCache cache = open();
  std::atomic<int> lost{0};
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        const std::string key = std::to_string(round);
        auto entry = cache.find(key);
        if (!entry) {
          auto put = cache.put(key, std::string(100'000, 'x'));
          if (put) entry = std::move(*put);
        }
        struct stat given{};
        struct stat named{};
        const bool is_there = entry && ::fstat(entry->file.get(), &given) == 0 &&
                              ::stat(entry->path.c_str(), &named) == 0 && given.st_ino == named.st_ino;
        if (!is_there) ++lost;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(count(), kRounds);
}

TEST_F(Cache, LeavesWhatSomebodyHasFound) {
  const ModuleCache cache = open();
  ASSERT_TRUE(cache.put("held", "compiled"));
  const auto held = cache.find("held");
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(cache.put(std::to_string(i), "compiled"));
  EXPECT_TRUE(std::filesystem::exists(held->path));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/wasm/0"));
}

TEST_F(Cache, BoundsTheBytesOfAllTogether) {
  const ModuleCache cache = open();
  for (const char* name : {"old", "young"}) {
    ASSERT_TRUE(cache.put(name, "compiled"));
    std::filesystem::permissions(folder_ + "/wasm/" + name, std::filesystem::perms::owner_all);
    std::filesystem::resize_file(folder_ + "/wasm/" + name, ModuleCache::kBytesMax / 2 - 1000);  // sparse
  }
  std::filesystem::last_write_time(folder_ + "/wasm/old",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  ASSERT_TRUE(cache.put("new", std::string(10'000, 'x')));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/wasm/old"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/wasm/young"));
}

TEST_F(Cache, ReadsNothingThatIsTooLargeToBeAnEntry) {
  const ModuleCache cache = open();
  write("a", "");
  std::filesystem::resize_file(folder_ + "/wasm/a", std::uint64_t{100} << 30);  // sparse
  const auto before = std::chrono::steady_clock::now();
  EXPECT_FALSE(cache.find("a"));
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/wasm/a"));
}

TEST_F(Cache, SweepsWhatKilledWritersLeft) {
  const ModuleCache cache = open();
  ASSERT_TRUE(cache.put("a", "compiled"));
  write("b.1.0.new", "half");
  write("c.1.0.new", "half");
  const Fd writer = *open_at(AT_FDCWD, (folder_ + "/wasm/c.1.0.new").c_str(), O_RDONLY);
  ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
  EXPECT_EQ(cache.sweep(), 1U);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/wasm/b.1.0.new"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/wasm/c.1.0.new"));
  EXPECT_TRUE(cache.find("a"));
}

TEST_F(Cache, RemovesWhatIsDamaged) {
  const ModuleCache cache = open();
  ASSERT_TRUE(cache.put("a", "compiled"));
  const std::string whole = read("a");
  for (const std::string& damaged : {whole.substr(1), whole + "x", std::string(), "Xompiled" + whole.substr(8),
                                     whole.substr(0, whole.size() - 1) + "?"}) {
    write("a", damaged);
    EXPECT_FALSE(cache.find("a"));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/wasm/a"));
  }
  write("a", whole);
  EXPECT_TRUE(cache.find("a"));
}

TEST_F(Cache, TakesNoEntryOfAnotherName) {
  const ModuleCache cache = open();
  ASSERT_TRUE(cache.put("a", "compiled"));
  write("b", read("a"));
  EXPECT_FALSE(cache.find("b"));
}

TEST_F(Cache, FollowsNoLinkAndTakesNothingThatOthersCanWrite) {
  const ModuleCache cache = open();
  ASSERT_TRUE(cache.put("a", "compiled"));
  std::filesystem::create_symlink("a", folder_ + "/wasm/link");
  EXPECT_FALSE(cache.find("link"));
  ::chmod((folder_ + "/wasm/a").c_str(), 0666);
  EXPECT_FALSE(cache.find("a"));
}

TEST_F(Cache, RefusesAFolderThatOthersCanWrite) {
  open();
  ::chmod((folder_ + "/wasm").c_str(), 0777);
  EXPECT_FALSE(ModuleCache::open_at(folder_ + "/wasm"));
}

TEST_F(Cache, MakesRoomForNewOnes) {
  const ModuleCache cache = open();
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(cache.put(std::to_string(i), "compiled"));
  EXPECT_LE(count(), 256);
  EXPECT_TRUE(cache.find("299"));
  EXPECT_FALSE(cache.find("0"));
}

}  // namespace
}  // namespace belljar::wasm
