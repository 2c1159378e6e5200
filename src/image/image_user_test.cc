#include "image/image_user.h"

#include <gtest/gtest.h>

#include <string>

#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/sh\n"
    "www-data:x:33:33::/var/www:/bin/sh\n"
    "app:x:1000:2000::/home/app:/bin/sh\n"
    "far:x:70000:1::/:/bin/sh\n"
    "broken\n"
    "minus:x:-1:0::/:/bin/sh";
constexpr std::string_view kGroup = "root:x:0:\ndocker:x:998:app\nfar:x:70000:\n";

UserIds ids(std::string_view user) {
  const auto found = resolve_user(user, kPasswd, kGroup);
  EXPECT_TRUE(found.has_value()) << user << ": " << (found ? "" : found.error().message);
  return found.value_or(UserIds{.uid = 99999, .gid = 99999});
}

TEST(ImageUserTest, ReadsEveryForm) {
  EXPECT_EQ(ids(""), (UserIds{.uid = 0, .gid = 0}));
  EXPECT_EQ(ids("root"), (UserIds{.uid = 0, .gid = 0}));
  EXPECT_EQ(ids("www-data"), (UserIds{.uid = 33, .gid = 33}));
  EXPECT_EQ(ids("app"), (UserIds{.uid = 1000, .gid = 2000}));
  EXPECT_EQ(ids("1000"), (UserIds{.uid = 1000, .gid = 2000}));
  EXPECT_EQ(ids("4321"), (UserIds{.uid = 4321, .gid = 0}));
  EXPECT_EQ(ids("4321:5"), (UserIds{.uid = 4321, .gid = 5}));
  EXPECT_EQ(ids("1000:docker"), (UserIds{.uid = 1000, .gid = 998}));
  EXPECT_EQ(ids("app:0"), (UserIds{.uid = 1000, .gid = 0}));
  EXPECT_EQ(ids("0:0"), (UserIds{.uid = 0, .gid = 0}));
  EXPECT_EQ(ids("65535:65535"), (UserIds{.uid = 65535, .gid = 65535}));
}

TEST(ImageUserTest, NeverGuesses) {
  const std::string odd[] = {"-1",
                             "4294967296",
                             "65536",
                             "1000:70000",
                             "18446744073709551616",
                             "0x0",
                             "nobody",
                             "app:none",
                             "far",
                             "root:far",
                             "minus",
                             ":",
                             ":0",
                             "1000:",
                             " root",
                             "root\n",
                             "1000:1:1",
                             "+0",
                             "0 ",
                             "broken",
                             "root:-1",
                             "/root",
                             std::string("root\0", 5),
                             std::string(10000, 'a')};
  for (const std::string& user : odd) {
    const auto found = resolve_user(user, kPasswd, kGroup);
    ASSERT_FALSE(found.has_value()) << user;
    EXPECT_EQ(found.error().code, ErrorCode::bad_image);
    EXPECT_NE(found.error().message.find("the image's user"), std::string::npos);
    EXPECT_LT(found.error().message.size(), 300U);
  }
}

TEST(ImageUserTest, HoldsWithoutTables) {
  EXPECT_EQ(resolve_user("5:6", "", "").value_or(UserIds{}), (UserIds{.uid = 5, .gid = 6}));
  EXPECT_FALSE(resolve_user("root", "", "").has_value());
}

}  // namespace
}  // namespace belljar
