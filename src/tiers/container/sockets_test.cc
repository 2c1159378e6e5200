#include "tiers/container/sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace belljar::container {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kTable =
    "Num       RefCount Protocol Flags    Type St Inode Path\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   123 /no/such/work/agent.sock\n"
    "0000000000000000: 00000003 00000000 00000000 0001 03   124\n"
    "0000000000000000: 00000002 00000000 00010000 0002 01 12345 @abstract\n"
    "0000000000000000: 00000002 00000000 00010000 0005 01   125 /no/such/work/with space/a b.sock\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   126 /no/such/work/agent.sock\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   127 /no/such/workshop/other.sock\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   128 relative.sock\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   129 /no/such/work/../secret.sock\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   130 /no/such/work\n";

TEST(Sockets, BelowAFolder) {
  EXPECT_THAT(socket_paths_below(kTable, "/no/such/work"), ElementsAre("agent.sock", "with space/a b.sock"));
  EXPECT_THAT(socket_paths_below(kTable, "/no/such/work/with space"), ElementsAre("a b.sock"));
  EXPECT_THAT(socket_paths_below(kTable, "/elsewhere"), IsEmpty());
}

TEST(Sockets, OddTables) {
  EXPECT_THAT(socket_paths_below("", "/x"), IsEmpty());
  EXPECT_THAT(socket_paths_below("\n\n  \n", "/x"), IsEmpty());
  EXPECT_THAT(socket_paths_below("a b c d e f g /x/y", "/x"), ElementsAre("y"));
  EXPECT_THAT(socket_paths_below("a b c d e f g /", "/x"), IsEmpty());
}

TEST(Sockets, TheTableIsThere) {
  EXPECT_THAT(read_socket_table(), testing::HasSubstr("Path"));
}

}  // namespace
}  // namespace belljar::container
