#include "spec/limit_use.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace belljar {
namespace {

LimitUse use_of(std::string_view name, const Outcome& outcome) {
  for (const LimitUse& use : limit_uses(outcome)) {
    if (use.row->name == name) return use;
  }
  ADD_FAILURE() << "no limit " << name;
  return {};
}

Outcome finished(RunStatus status = RunStatus::ok) {
  Outcome outcome;
  outcome.status = status;
  outcome.duration_ms = 2000;
  outcome.usage.cpu_user_ms = 900;
  outcome.usage.cpu_system_ms = 100;
  outcome.usage.memory_peak_bytes = 10 * kMiB;
  outcome.usage.processes_peak = 3;
  outcome.usage.disk_written_bytes = 0;
  outcome.standard_output.bytes_total = 12;
  outcome.standard_error.bytes_total = 70;
  return outcome;
}

TEST(LimitUse, HasARowForEachLimit) {
  const std::vector<LimitUse> uses = limit_uses(finished());
  ASSERT_EQ(uses.size(), limit_rows().size());
  for (std::size_t i = 0; i < uses.size(); ++i) EXPECT_EQ(uses[i].row, &limit_rows()[i]);
}

TEST(LimitUse, OfAnOrdinaryRun) {
  const Outcome outcome = finished();
  EXPECT_EQ(use_of("memory", outcome).used, 10 * kMiB);
  EXPECT_EQ(use_of("memory", outcome).cap, 256 * kMiB);
  EXPECT_EQ(use_of("cpus", outcome).used, 500u);
  EXPECT_EQ(use_of("tasks", outcome).used, 3u);
  EXPECT_EQ(use_of("timeout", outcome).used, 2000u);
  EXPECT_EQ(use_of("tmp_size", outcome).used, 0u);
  EXPECT_EQ(use_of("output", outcome).used, 70u);
  EXPECT_FALSE(use_of("open_files", outcome).used);
  for (const LimitUse& use : limit_uses(outcome)) EXPECT_FALSE(use.struck || use.is_censored) << use.row->name;
}

TEST(LimitUse, NamesLimitsThatWereNear) {
  Outcome outcome = finished();
  EXPECT_TRUE(near_limits(outcome).empty());
  outcome.usage.memory_peak_bytes = 230 * kMiB;
  EXPECT_TRUE(near_limits(outcome).empty());
  outcome.usage.memory_peak_bytes = 231 * kMiB;
  outcome.usage.processes_peak = 255;
  const std::vector<std::string> sentences = near_limits(outcome);
  ASSERT_EQ(sentences.size(), 2u);
  EXPECT_EQ(sentences[0], "--memory: used 231M of the limit of 256M");
  EXPECT_EQ(sentences[1], "--tasks: used 255 of the limit of 256");
  outcome.status = RunStatus::memory;  // it struck: that is no warning
  EXPECT_EQ(near_limits(outcome).size(), 1u);
  outcome.status = RunStatus::denied;
  EXPECT_TRUE(near_limits(outcome).empty());
}

TEST(LimitUse, TellsTheFullSpaceFromTheFileTooLarge) {
  Outcome outcome = finished(RunStatus::disk);
  outcome.usage.disk_peak_bytes = 50 * kMiB;
  EXPECT_TRUE(use_of("tmp_size", outcome).struck);
  EXPECT_FALSE(use_of("file_size", outcome).struck);
  outcome.denials = {{"file_size", "a larger file", "", "", 1}};
  EXPECT_FALSE(use_of("tmp_size", outcome).struck);
  EXPECT_TRUE(use_of("file_size", outcome).struck);
}

TEST(LimitUse, UnmeasuredIsNotZero) {
  Outcome outcome = finished();
  outcome.usage.memory_peak_bytes = 0;
  EXPECT_FALSE(use_of("memory", outcome).used);
}

TEST(LimitUse, AStruckLimitIsTheLeastThatWasWanted) {
  const struct {
    RunStatus status;
    std::string_view limit;
  } cases[] = {{RunStatus::memory, "memory"}, {RunStatus::pids, "tasks"},   {RunStatus::timeout, "timeout"},
               {RunStatus::disk, "tmp_size"}, {RunStatus::cpu, "cpu_time"}, {RunStatus::output, "output"}};
  for (const auto& each : cases) {
    EXPECT_TRUE(is_limit_status(each.status));
    Outcome outcome = finished(each.status);
    if (each.status == RunStatus::disk) outcome.usage.disk_peak_bytes = 50 * kMiB;
    for (const LimitUse& use : limit_uses(outcome)) {
      EXPECT_EQ(use.is_censored, use.row->name == each.limit) << use.row->name;
      if (!use.is_censored) continue;
      EXPECT_GE(use.used.value(), use.cap);
    }
  }
}

TEST(LimitUse, ARefusalThatTheProgramSurvivedCountsToo) {
  Outcome outcome = finished();
  outcome.denials.push_back({"memory", "more memory", "", "--memory", 1});
  EXPECT_TRUE(use_of("memory", outcome).is_censored);
  outcome.denials.push_back({"tasks", "a new process", "", "--tasks", 1});
  EXPECT_TRUE(use_of("tasks", outcome).is_censored);
}

TEST(LimitUse, AFailureWhereMemoryIsSampledTellsNothingOfIt) {
  Outcome outcome = finished(RunStatus::error);
  EXPECT_TRUE(use_of("memory", outcome).used);
  outcome.isolation.weaker.push_back({"memory", "no control group"});
  EXPECT_FALSE(use_of("memory", outcome).used);
  outcome.status = RunStatus::ok;
  EXPECT_TRUE(use_of("memory", outcome).used);
}

TEST(LimitUse, UsedUpInodesAreNoLackOfBytes) {
  Outcome outcome = finished(RunStatus::disk);
  outcome.usage.disk_peak_inodes = 65536;
  EXPECT_TRUE(use_of("tmp_inodes", outcome).struck);
  EXPECT_FALSE(use_of("tmp_size", outcome).struck);
}

TEST(LimitUse, CutOutputIsKnownInFull) {
  Outcome outcome = finished();
  outcome.standard_output.truncated = true;
  outcome.standard_output.bytes_total = 9 * kMiB;
  const LimitUse use = use_of("output", outcome);
  EXPECT_TRUE(use.struck);
  EXPECT_FALSE(use.is_censored);
  EXPECT_EQ(use.used, 9 * kMiB);
}

TEST(LimitUse, OfCollectedFiles) {
  Outcome outcome = finished();
  EXPECT_FALSE(use_of("collect_size", outcome).used);
  outcome.files = {{.saved_as = "r/a", .size = 30}, {.saved_as = "r/b", .size = 12}, {.size = 99}};
  EXPECT_EQ(use_of("collect_file", outcome).used, 30u);
  EXPECT_EQ(use_of("collect_size", outcome).used, 42u);
  outcome.files_truncated = true;
  EXPECT_FALSE(use_of("collect_size", outcome).used);
}

TEST(LimitUse, WhatDidNotRunTellsNothing) {
  for (const RunStatus status : {RunStatus::denied, RunStatus::internal, RunStatus::cancelled}) {
    EXPECT_FALSE(tells_of_use(status));
    for (const LimitUse& use : limit_uses(finished(status))) EXPECT_FALSE(use.used) << use.row->name;
  }
}

}  // namespace
}  // namespace belljar
