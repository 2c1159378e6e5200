#include "tiers/wasm/module_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

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
  ASSERT_TRUE(cache.put("a", "other"));
  EXPECT_TRUE(read("a").starts_with("other"));
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
  const std::filesystem::directory_iterator all(folder_ + "/wasm");
  EXPECT_LE(std::distance(begin(all), end(all)), 256);
  EXPECT_TRUE(cache.find("299"));
  EXPECT_FALSE(cache.find("0"));
}

}  // namespace
}  // namespace belljar::wasm
