#include "wasm/wasi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "wasm/wasi_calls.h"

namespace belljar::wasm {
namespace {

using calls::u32;

constexpr u32 kOutside = 0xFFFFFFF0;

// One folder handed over, as descriptor 0, and a memory of 64 KiB.
class WasiCalls : public testing::Test {
 protected:
  WasiCalls() : wasi_({"name", "argument"}, {"A=b"}) {
    char name[] = "/tmp/wasi-XXXXXX";
    folder_ = ::mkdtemp(name);
    EXPECT_TRUE(wasi_.add_folder(folder_));
    wasi_.set_memory(GuestMemory(memory_));
  }
  ~WasiCalls() override { std::filesystem::remove_all(folder_); }

  u32 put(std::string_view text, u32 at) {
    std::memcpy(memory_.data() + at, text.data(), text.size());
    return at;
  }
  u32 word(u32 at) const { return *wasi_.memory().load<u32>(at); }

  WasiErrno open(std::string_view path, u32 flags = oflag::kCreate, std::uint64_t rights = rights::kAll) {
    put(path, 100);
    return calls::path_open(wasi_, 0, 1, 100, static_cast<u32>(path.size()), flags, rights, rights, 0, 0);
  }

  std::string folder_;
  std::array<std::byte, 65536> memory_{};
  Wasi wasi_;
};

TEST_F(WasiCalls, GiveArguments) {
  EXPECT_EQ(calls::args_sizes_get(wasi_, 0, 4), WasiErrno::success);
  EXPECT_EQ(word(0), 2U);
  EXPECT_EQ(word(4), 14U);
  EXPECT_EQ(calls::args_get(wasi_, 0, 16), WasiErrno::success);
  EXPECT_EQ(*wasi_.memory().text(word(4), 8), "argument");
}

TEST_F(WasiCalls, WriteAndReadAFile) {
  ASSERT_EQ(open("file"), WasiErrno::success);
  const u32 fd = word(0);
  put("hello", 200);
  const GuestVector part{200, 5};
  ASSERT_TRUE(wasi_.memory().store(300, part));
  EXPECT_EQ(calls::fd_write(wasi_, fd, 300, 1, 8), WasiErrno::success);
  EXPECT_EQ(word(8), 5U);
  EXPECT_EQ(calls::fd_seek(wasi_, fd, 0, 0, 16), WasiErrno::success);
  EXPECT_EQ(calls::fd_read(wasi_, fd, 300, 1, 8), WasiErrno::success);
  EXPECT_EQ(calls::fd_close(wasi_, fd), WasiErrno::success);
  EXPECT_EQ(calls::fd_close(wasi_, fd), WasiErrno::badf);
}

TEST_F(WasiCalls, HoldAFileToItsRights) {
  ASSERT_EQ(open("file"), WasiErrno::success);
  ASSERT_EQ(open("file", 0, rights::kRead), WasiErrno::success);
  const u32 fd = word(0);
  EXPECT_EQ(calls::fd_write(wasi_, fd, 300, 0, 8), WasiErrno::notcapable);
  EXPECT_EQ(calls::fd_filestat_set_size(wasi_, fd, 0), WasiErrno::notcapable);
  EXPECT_EQ(calls::fd_fdstat_set_rights(wasi_, fd, rights::kAll, 0), WasiErrno::notcapable);
}

TEST_F(WasiCalls, RefuseAddressesOutside) {
  ASSERT_EQ(open("file"), WasiErrno::success);
  const u32 fd = word(0);
  const GuestVector far{kOutside, 64};
  ASSERT_TRUE(wasi_.memory().store(300, far));
  EXPECT_EQ(calls::fd_write(wasi_, fd, 300, 1, 8), WasiErrno::fault);
  EXPECT_EQ(calls::fd_read(wasi_, fd, kOutside, 1, 8), WasiErrno::fault);
  EXPECT_EQ(calls::fd_read(wasi_, fd, 300, 0x20000000, 8), WasiErrno::fault);
  EXPECT_EQ(calls::random_get(wasi_, kOutside, 32), WasiErrno::fault);
  EXPECT_EQ(calls::args_get(wasi_, kOutside, 0), WasiErrno::fault);
  EXPECT_EQ(calls::path_open(wasi_, 0, 1, kOutside, 9, 0, 0, 0, 0, 0), WasiErrno::fault);
  EXPECT_EQ(calls::poll_oneoff(wasi_, kOutside, 0, 1, 0), WasiErrno::fault);
  EXPECT_EQ(calls::fd_readdir(wasi_, 0, kOutside, 100, 0, 0), WasiErrno::fault);
}

TEST_F(WasiCalls, ReadAFolderInPieces) {
  for (const char* name : {"one", "two", "three"}) ASSERT_EQ(open(name), WasiErrno::success);
  std::vector<std::string> names;
  std::uint64_t cookie = 0;
  while (true) {
    ASSERT_EQ(calls::fd_readdir(wasi_, 0, 1000, 40, cookie, 0), WasiErrno::success);
    const u32 used = word(0);
    if (used < sizeof(DirectoryEntry)) break;
    const auto entry = *wasi_.memory().load<DirectoryEntry>(1000);
    ASSERT_LE(sizeof entry + entry.name_size, used);
    names.emplace_back(*wasi_.memory().text(1000 + sizeof entry, entry.name_size));
    cookie = entry.next;
  }
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{".", "..", "one", "three", "two"}));
}

TEST_F(WasiCalls, RenumberOntoItself) {
  EXPECT_EQ(calls::fd_renumber(wasi_, 0, 0), WasiErrno::success);
  EXPECT_EQ(calls::fd_renumber(wasi_, 0, 5), WasiErrno::badf);
  ASSERT_EQ(open("file"), WasiErrno::success);
  EXPECT_EQ(calls::fd_renumber(wasi_, word(0), 0), WasiErrno::success);
  EXPECT_EQ(calls::fd_prestat_get(wasi_, 0, 0), WasiErrno::badf) << "the folder is gone";
}

TEST_F(WasiCalls, WaitForAClock) {
  Subscription wait{};
  wait.user_data = 7;
  wait.kind = EventKind::clock;
  wait.clock_or_fd = 1;
  wait.timeout_ns = 1000;
  ASSERT_TRUE(wasi_.memory().store(500, wait));
  EXPECT_EQ(calls::poll_oneoff(wasi_, 500, 600, 1, 0), WasiErrno::success);
  EXPECT_EQ(word(0), 1U);
  EXPECT_EQ(wasi_.memory().load<Event>(600)->user_data, 7U);
  EXPECT_EQ(calls::poll_oneoff(wasi_, 500, 600, 0, 0), WasiErrno::inval);
}

TEST_F(WasiCalls, EndTheModule) {
  calls::proc_exit(wasi_, 9);
  EXPECT_EQ(wasi_.exit_code(), 9U);
}

}  // namespace
}  // namespace belljar::wasm
