#include "files/list_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "files/test_folder.h"

namespace belljar {
namespace {

TEST(ListFolder, TellsNamesInOrderAndKinds) {
  const TestFolder folder;
  folder.write("b\n\x1b", "x");
  folder.make_folder("a");
  folder.link("/etc", "c");
  ASSERT_EQ(::mkfifoat(folder.fd(), "d", 0600), 0);
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, folder.at("e").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto listing = list_folder(folder.fd(), 5);
  ASSERT_TRUE(listing);
  EXPECT_FALSE(listing->is_cut);
  std::vector<std::string> names;
  std::vector<FileKind> kinds;
  for (const FolderEntry& entry : listing->entries) {
    names.push_back(entry.name);
    kinds.push_back(entry.kind);
  }
  EXPECT_THAT(names, testing::ElementsAre("a", "b\n\x1b", "c", "d", "e"));
  EXPECT_THAT(kinds, testing::ElementsAre(FileKind::folder, FileKind::regular, FileKind::link, FileKind::pipe,
                                          FileKind::socket));
}

TEST(ListFolder, ReadsNoMoreThanItMay) {
  const TestFolder folder;
  for (int i = 0; i < 2000; ++i) folder.write(std::to_string(i), "");
  const auto all = list_folder(folder.fd(), 2000);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->entries.size(), 2000u);
  EXPECT_FALSE(all->is_cut);
  const Fd again(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY));
  const auto cut = list_folder(again.get(), 1999);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->entries.size(), 1999u);
  EXPECT_TRUE(cut->is_cut);
}

TEST(ListFolder, FailsWhereThereIsNoFolder) {
  EXPECT_EQ(list_folder(-1, 1).error().value, EBADF);
}

TEST(FileKind, KnowsDevices) {
  EXPECT_EQ(kind_of_mode(S_IFCHR | 0600), FileKind::device);
  EXPECT_EQ(kind_of_mode(S_IFBLK), FileKind::device);
  EXPECT_EQ(kind_of_mode(0), FileKind::unknown);
}

}  // namespace
}  // namespace belljar
