#include "wasm/report.h"

#include <gtest/gtest.h>

namespace belljar::wasm {
namespace {

TEST(Report, ComesBackAsItWas) {
  const Report sent{.ending = Ending::bad_module,
                    .exit_code = 7,
                    .fuel_used = 1ULL << 40,
                    .memory_bytes = 65536,
                    .message = "no good"};
  const auto read = decode_report(encode(sent));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ending, sent.ending);
  EXPECT_EQ(read->exit_code, sent.exit_code);
  EXPECT_EQ(read->fuel_used, sent.fuel_used);
  EXPECT_EQ(read->memory_bytes, sent.memory_bytes);
  EXPECT_EQ(read->message, sent.message);
}

TEST(Report, KeepsTheBeginningOfALongMessage) {
  const std::string bytes = encode({.ending = Ending::bad_module, .message = std::string(2 * kReportBytesMax, 'x')});
  EXPECT_EQ(bytes.size(), kReportBytesMax);
  ASSERT_TRUE(decode_report(bytes));
  EXPECT_TRUE(decode_report(bytes)->message.starts_with("xxxx"));
}

TEST(Report, MakesTheMessageHarmless) {
  const auto read = decode_report(encode({.ending = Ending::bad_module, .message = "a\x1b[2J\nb"}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->message.find('\x1b'), std::string::npos);
  EXPECT_EQ(read->message.find('\n'), std::string::npos);
}

TEST(Report, IsRefusedWhereItIsNone) {
  const std::string good = encode({.ending = Ending::exited, .message = "ab"});
  EXPECT_TRUE(decode_report(good));
  EXPECT_FALSE(decode_report(""));
  EXPECT_FALSE(decode_report(good.substr(0, good.size() - 1)));
  EXPECT_FALSE(decode_report(good + "c"));
  std::string other = good;
  other[0] = 'x';
  EXPECT_FALSE(decode_report(other));
  other = good;
  other[28] = static_cast<char>(static_cast<int>(kEndingLast) + 1);
  EXPECT_FALSE(decode_report(other));
}

}  // namespace
}  // namespace belljar::wasm
