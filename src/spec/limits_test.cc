#include "spec/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "spec/errors.h"

namespace belljar {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const LimitRow& row_named(std::string_view name) {
  for (const LimitRow& row : limit_rows()) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << "no row " << name;
  return limit_rows()[0];
}

std::uint64_t parsed(std::string_view name, std::string_view text) {
  const auto value = parse_limit(row_named(name), text, "test");
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message);
  return value.value_or(0);
}

std::string refusal(std::string_view name, std::string_view text) {
  const auto value = parse_limit(row_named(name), text, "--" + std::string(row_named(name).flag));
  EXPECT_FALSE(value) << name << " took " << text << " for " << value.value_or(0);
  if (value) return "";
  EXPECT_EQ(value.error().code, ErrorCode::bad_value);
  EXPECT_EQ(value.error().message.find('\n'), std::string::npos);
  return value.error().message;
}

TEST(Limits, EveryRowsPresetIsInItsRange) {
  for (const LimitRow& row : limit_rows()) {
    EXPECT_LE(row.least, row.preset) << row.name;
    EXPECT_LE(row.preset, row.most) << row.name;
    EXPECT_EQ((Limits{}.*row.field).value, row.preset) << row.name;
    EXPECT_EQ((Limits{}.*row.field).source, LimitSource::preset) << row.name;
  }
}

TEST(ParseLimit, TakesBytesAsPeopleWriteThem) {
  EXPECT_EQ(parsed("memory", "1048576"), kMiB);
  EXPECT_EQ(parsed("memory", "256M"), 256 * kMiB);
  EXPECT_EQ(parsed("memory", "1.5G"), 1536 * kMiB);
  EXPECT_EQ(parsed("memory", "1T"), kTiB);
  for (const char* text :
       {"64m", "64M", "64MB", "64mb", "64Mi", "64MiB", "64 MiB", "65536K", "67108864 B", "67108864b"}) {
    EXPECT_EQ(parsed("memory", text), 64 * kMiB) << text;
  }
  EXPECT_EQ(parsed("output", "0"), 0u);
}

TEST(ParseLimit, TakesTimesAsPeopleWriteThem) {
  EXPECT_EQ(parsed("timeout", "30"), 30'000u);
  EXPECT_EQ(parsed("timeout", "0.5"), 500u);
  EXPECT_EQ(parsed("timeout", "500ms"), 500u);
  EXPECT_EQ(parsed("timeout", "1.5s"), 1500u);
  EXPECT_EQ(parsed("timeout", "2m"), 120'000u);
  EXPECT_EQ(parsed("timeout", "2 min"), 120'000u);
  EXPECT_EQ(parsed("timeout", "1h"), 3'600'000u);
  EXPECT_EQ(parsed("timeout", "1d"), 86'400'000u);
}

TEST(ParseLimit, TakesCoresAndCounts) {
  EXPECT_EQ(parsed("cpus", "0.5"), 500u);
  EXPECT_EQ(parsed("cpus", "2"), 2000u);
  EXPECT_EQ(parsed("cpus", "0.01"), 10u);
  EXPECT_EQ(parsed("tasks", "1"), 1u);
}

TEST(ParseLimit, RefusesWhatIsNotAValue) {
  for (const LimitRow& row : limit_rows()) {
    for (const char* text :
         {"",    " ",     "-1",   "+1",  "nan",   "inf",   "1e9", "1e99G",  "0x10",        "1G garbage", "1 ",
          " 1",  "1  G",  "1..5", "1.",  ".5",    "1.5.5", "1,5", "1_000",  "G",           "unlimited",  "max",
          "1GG", "1Gibi", "1iB",  "1\n", "1\xFF", "١",     "1K1", "--cpus", "0.0000000001"}) {
      refusal(row.name, text);
    }
    refusal(row.name, std::string_view("1\0", 2));
    refusal(row.name, std::string(100000, '9'));
    refusal(row.name, std::string(100000, '9') + "G");
  }
  for (const char* text : {"1.5", "2K", "1s"}) refusal("tasks", text);
  for (const char* text : {"1000m", "1K"}) refusal("cpus", text);
  for (const char* text : {"1y", "1K", "1 hour"}) refusal("timeout", text);
  for (const char* text : {"64s", "64P", "64Mib/s"}) refusal("memory", text);
}

TEST(ParseLimit, RefusesWhatIsOutOfRange) {
  for (const LimitRow& row : limit_rows()) {
    if (row.least > 0) {
      refusal(row.name, "0");
      refusal(row.name, format_limit(row.unit, row.least - 1));
    }
    refusal(row.name, format_limit(row.unit, row.most + 1));
    EXPECT_EQ(parsed(row.name, format_limit(row.unit, row.least)), row.least);
    EXPECT_EQ(parsed(row.name, format_limit(row.unit, row.most)), row.most);
    // 2^64 and its neighbours must not wrap round.
    for (const char* text : {"18446744073709551615", "18446744073709551616", "18446744073709551617"})
      refusal(row.name, text);
  }
  refusal("memory", "16777216T");
  refusal("memory", "1.0");
}

TEST(ParseLimit, SaysWhereWhatAndWhatWouldBeRight) {
  EXPECT_EQ(refusal("memory", "0"), "--memory: \"0\" is out of range; it must be from 1M to 64T, such as 256M");
  EXPECT_THAT(refusal("timeout", "soon"),
              AllOf(StartsWith("--timeout: \"soon\" is not a length of time"), HasSubstr("30 s")));
  EXPECT_THAT(refusal("memory", "\x1b[2J\n"), HasSubstr("\"\\x1b[2J\\n\""));
}

TEST(FormatLimit, WritesWhatPeopleRead) {
  EXPECT_EQ(format_limit(LimitUnit::bytes, 256 * kMiB), "256M");
  EXPECT_EQ(format_limit(LimitUnit::bytes, 1536 * kMiB), "1536M");
  EXPECT_EQ(format_limit(LimitUnit::bytes, 1000001), "1000001 B");
  EXPECT_EQ(format_limit(LimitUnit::milliseconds, 30'000), "30 s");
  EXPECT_EQ(format_limit(LimitUnit::milliseconds, 1'500), "1.5 s");
  EXPECT_EQ(format_limit(LimitUnit::milliseconds, 300'000), "5 min");
  EXPECT_EQ(format_limit(LimitUnit::milliseconds, 7'200'000), "2 h");
  EXPECT_EQ(format_limit(LimitUnit::milliseconds, 172'800'000), "2 d");
  EXPECT_EQ(format_limit(LimitUnit::milliseconds, 20), "20 ms");
  EXPECT_EQ(format_limit(LimitUnit::millicpus, 500), "0.5");
  EXPECT_EQ(format_limit(LimitUnit::millicpus, 2000), "2");
  EXPECT_EQ(format_limit(LimitUnit::count, 1024), "1024");
}

TEST(FormatLimit, IsExact) {
  std::mt19937_64 random(11);
  for (const LimitRow& row : limit_rows()) {
    for (int round = 0; round < 500; ++round) {
      const std::uint64_t value = row.least + (random() >> (random() % 64)) % (row.most - row.least + 1);
      ASSERT_EQ(parsed(row.name, format_limit(row.unit, value)), value);
    }
  }
}

TEST(LimitSentence, HoldsTheValue) {
  EXPECT_EQ(limit_sentence(row_named("timeout"), 30'000), "killed after the wall clock limit of 30 s");
  for (const LimitRow& row : limit_rows()) {
    EXPECT_THAT(limit_sentence(row, row.preset), HasSubstr(format_limit(row.unit, row.preset)));
    EXPECT_EQ(limit_sentence(row, row.preset).find('{'), std::string::npos);
  }
}

TEST(Errors, EveryRowHasItsNameStatusAndText) {
  EXPECT_EQ(error_name(ErrorCode::bad_mount), "bad_mount");
  EXPECT_EQ(error_exit_status(ErrorCode::bad_mount), 125);
  EXPECT_EQ(error_exit_status(ErrorCode::not_executable), 126);
  EXPECT_EQ(error_exit_status(ErrorCode::not_found), 127);
  EXPECT_EQ(error_text(ErrorCode::bad_mount), "a mount can't be made as asked");
}

TEST(Limits, AmountsToRead) {
  const auto bytes = [](std::uint64_t value) { return show_amount(LimitUnit::bytes, value); };
  EXPECT_EQ(bytes(0), "0 B");
  EXPECT_EQ(bytes(1023), "1023 B");
  EXPECT_EQ(bytes(kKiB), "1K");
  EXPECT_EQ(bytes(14051000), "13.4M");
  EXPECT_EQ(bytes(256 * kMiB), "256M");
  EXPECT_EQ(bytes(kGiB + kGiB / 4), "1.25G");
  EXPECT_EQ(bytes(64 * kTiB), "64T");
  const auto time = [](std::uint64_t value) { return show_amount(LimitUnit::milliseconds, value); };
  EXPECT_EQ(time(0), "0 ms");
  EXPECT_EQ(time(999), "999 ms");
  EXPECT_EQ(time(1250), "1.25 s");
  EXPECT_EQ(time(90'000), "90 s");
  EXPECT_EQ(time(300'000), "5 min");
  EXPECT_EQ(time(86'400'000), "24 h");
  EXPECT_EQ(show_amount(LimitUnit::millicpus, 500), "0.5");
  EXPECT_EQ(show_amount(LimitUnit::millicpus, 2000), "2");
  EXPECT_EQ(show_amount(LimitUnit::count, 65536), "65536");
}

}  // namespace
}  // namespace belljar
