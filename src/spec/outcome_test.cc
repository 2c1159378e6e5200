#include "spec/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "spec/errors.h"

namespace belljar {
namespace {

using testing::ElementsAre;

Json record_of(const Outcome& outcome, StreamContent streams = StreamContent::included) {
  const std::string text = outcome_to_json(outcome, streams);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto json = parse_json(text);
  EXPECT_TRUE(json) << text;
  return json.value_or(Json::object());
}

TEST(Outcome, HasTheKeysOfTheRecord) {
  const Json record = record_of(Outcome{});
  std::vector<std::string> keys;
  for (const auto& member : record.items()) keys.push_back(member.key());
  EXPECT_THAT(keys, ElementsAre("status", "exit_code", "signal", "reason", "error", "stdout", "stdout_truncated",
                                "stdout_bytes_total", "stderr", "stderr_truncated", "stderr_bytes_total", "duration_ms",
                                "usage", "limits", "denials", "warnings", "network", "files", "files_skipped",
                                "files_truncated", "changes_id", "isolation"));
  EXPECT_EQ(record["limits"]["memory_bytes"], 256 * kMiB);
  EXPECT_EQ(record["limits"]["timeout_ms"], 30000);
  EXPECT_EQ(record["limits"]["cpus"], 1.0);
  EXPECT_EQ(record["limits"]["tasks"], 256);
  EXPECT_EQ(record["limits"].size(), limit_rows().size());
}

TEST(Outcome, ALimitThatIsOffIsNone) {
  Outcome outcome;
  EXPECT_EQ(record_of(outcome)["limits"]["cpu_time_ms"], nullptr);
  EXPECT_EQ(record_of(outcome)["limits"]["fuel"], nullptr);
  outcome.limits.cpu_time.value = 500;
  outcome.limits.memory.value = 64 * kTiB;  // the most, but never off
  EXPECT_EQ(record_of(outcome)["limits"]["cpu_time_ms"], 500);
  EXPECT_EQ(record_of(outcome)["limits"]["memory_bytes"], 64 * kTiB);
}

TEST(Outcome, TellsOfCollectedFiles) {
  Outcome outcome;
  outcome.files = {{"/out/a", "./r/a", 3, std::string(64, '0'), FileChange::added},
                   {"/out/\xFF", "./r/\xFF", 0, std::string(64, 'f'), FileChange::modified}};
  outcome.files_skipped = {{"/out/l", "a symbolic link"}};
  outcome.files_truncated = true;
  const Json record = record_of(outcome);
  EXPECT_EQ(record["files"][0], Json({{"path", "/out/a"},
                                      {"saved_as", "./r/a"},
                                      {"size", 3},
                                      {"sha256", std::string(64, '0')},
                                      {"change", "added"}}));
  EXPECT_EQ(record["files"][1]["path"], "/out/\uFFFD");
  EXPECT_EQ(record["files"][1]["path_base64"], "L291dC//");
  EXPECT_EQ(record["files"][1]["change"], "modified");
  EXPECT_EQ(record["files_skipped"], Json::array({{{"path", "/out/l"}, {"reason", "a symbolic link"}}}));
  EXPECT_EQ(record["files_truncated"], true);
  EXPECT_EQ(record["changes_id"], nullptr);
  outcome.changes_id = "0123abcd";
  EXPECT_EQ(record_of(outcome)["changes_id"], "0123abcd");
}

TEST(Outcome, WhatWasLeftBehindIsNoSuccess) {
  Outcome outcome;
  outcome.status = RunStatus::ok;
  EXPECT_EQ(exit_status(outcome), 0);
  outcome.files_truncated = true;
  EXPECT_EQ(exit_status(outcome), 125);
  outcome.status = RunStatus::error;
  outcome.exit_code = 3;
  EXPECT_EQ(exit_status(outcome), 3);
}

TEST(Outcome, KeepsOutputLossless) {
  Outcome outcome;
  outcome.standard_output = {.bytes = "\x1b[31m \xC2\x9d \xE2\x82\xAC\n", .bytes_total = 99, .truncated = true};
  outcome.standard_error = {.bytes = std::string("\xFF\0\xFE"
                                                 "a",
                                                 4),
                            .bytes_total = 4};
  const Json record = record_of(outcome);
  EXPECT_EQ(record["stdout"], outcome.standard_output.bytes);
  EXPECT_EQ(record["stdout_truncated"], true);
  EXPECT_EQ(record["stdout_bytes_total"], 99);
  EXPECT_FALSE(record.contains("stdout_base64"));
  EXPECT_EQ(record["stderr"], std::string("\xEF\xBF\xBD\0\xEF\xBF\xBD"
                                          "a",
                                          8));
  EXPECT_EQ(record["stderr_base64"], "/wD+YQ==");
}

TEST(Outcome, LeavesStreamsOutWhenAsked) {
  Outcome outcome;
  outcome.files = {{.path = "/out/secret"}};
  outcome.standard_output = {.bytes = "\xFF", .bytes_total = 1};
  const Json record = record_of(outcome, StreamContent::omitted);
  EXPECT_FALSE(record.contains("stdout"));
  EXPECT_FALSE(record.contains("stdout_base64"));
  EXPECT_EQ(record["stdout_bytes_total"], 1);
  EXPECT_TRUE(record.contains("files"));
  const Json remembered = record_of(outcome, StreamContent::omitted_with_files);
  EXPECT_FALSE(remembered.contains("stdout"));
  EXPECT_EQ(remembered.dump().find("secret"), std::string::npos);
}

TEST(Outcome, LeavesOutWhatMessagesQuoteWhenAsked) {
  Outcome outcome;
  outcome.status = RunStatus::denied;
  outcome.reason = "secret: command not found";
  outcome.error = Error{ErrorCode::not_found, outcome.reason};
  outcome.files = {{.path = "/out/secret"}};
  EXPECT_EQ(record_of(outcome, StreamContent::omitted_with_files)["reason"], outcome.reason);
  const Json record = record_of(outcome, StreamContent::omitted_with_words);
  EXPECT_EQ(record.dump().find("secret"), std::string::npos);
  EXPECT_EQ(record["error"]["code"], "not_found");
  EXPECT_EQ(record["reason"], error_text(ErrorCode::not_found));
}

TEST(Outcome, RecordsWallsDenialsAndErrors) {
  Outcome outcome;
  outcome.status = RunStatus::denied;
  outcome.error = Error{ErrorCode::bad_mount, "no such folder"};
  outcome.denials = {{.kind = "syscall", .target = "io_uring\xFF", .rule = "seccomp", .hint = "", .count = 3}};
  outcome.isolation = {.tier = "container",
                       .enforced = {"files"},
                       .weaker = {{"groups", "why"}},
                       .missing = {{"landlock", "old kernel"}}};
  const Json record = record_of(outcome);
  EXPECT_EQ(record["status"], "denied");
  EXPECT_EQ(record["error"]["code"], "bad_mount");
  EXPECT_EQ(record["denials"][0]["count"], 3);
  EXPECT_EQ(record["isolation"]["weaker"][0]["name"], "groups");
  EXPECT_EQ(record["isolation"]["missing"][0]["why"], "old kernel");
  EXPECT_TRUE(record["exit_code"].is_null());
}

TEST(Outcome, ExitStatusSaysHowItEnded) {
  const auto status_of = [](RunStatus status, std::optional<int> exit_code, std::optional<int> signal) {
    return exit_status(Outcome{.status = status, .exit_code = exit_code, .signal = signal});
  };
  EXPECT_EQ(status_of(RunStatus::ok, 0, {}), 0);
  EXPECT_EQ(status_of(RunStatus::error, 7, {}), 7);
  EXPECT_EQ(status_of(RunStatus::signal, {}, 11), 139);
  EXPECT_EQ(status_of(RunStatus::timeout, {}, 9), 124);
  EXPECT_EQ(status_of(RunStatus::memory, 1, {}), 124);
  EXPECT_EQ(status_of(RunStatus::output, {}, 9), 124);
  EXPECT_EQ(status_of(RunStatus::pids, 3, {}), 3);
  EXPECT_EQ(status_of(RunStatus::disk, {}, 6), 134);
  EXPECT_EQ(status_of(RunStatus::cancelled, {}, 15), 143);
  EXPECT_EQ(status_of(RunStatus::cancelled, {}, {}), 130);
  EXPECT_EQ(status_of(RunStatus::internal, {}, {}), 125);
  EXPECT_EQ(exit_status(Outcome{.status = RunStatus::denied, .error = Error{ErrorCode::not_found, ""}}), 127);
}

TEST(Outcome, NamesEveryStatus) {
  EXPECT_EQ(status_name(RunStatus::ok), "ok");
  EXPECT_EQ(status_name(RunStatus::internal), "internal");
}

}  // namespace
}  // namespace belljar
