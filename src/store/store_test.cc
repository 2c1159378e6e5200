#include "store/store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/json.h"
#include "spec/errors.h"
#include "store/migrations.h"

namespace belljar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string pattern = "/tmp/belljar-store-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    file_ = folder_ + "/belljar/runs.db";
  }
  ~StoreTest() override { std::filesystem::remove_all(folder_); }

  Store open(const Retention& retention = {}) {
    Result<Store> store = Store::open(file_, retention);
    if (!store) ADD_FAILURE() << store.error().message;
    return std::move(*store);
  }

  std::string folder_;
  std::string file_;
};

Outcome finished(RunStatus status = RunStatus::ok) {
  Outcome outcome;
  outcome.status = status;
  outcome.exit_code = 0;
  outcome.duration_ms = 120;
  outcome.usage.memory_peak_bytes = 5 * kMiB;
  outcome.standard_output.bytes = "what the program wrote";
  outcome.standard_output.bytes_total = outcome.standard_output.bytes.size();
  return outcome;
}

std::int64_t record(Store& store, const std::string& profile, std::int64_t started_ms = 1'000,
                    RunStatus status = RunStatus::ok, std::optional<KeptTexts> kept = std::nullopt) {
  const Outcome outcome = finished(status);
  const Result<std::int64_t> id = store.record({profile, started_ms, &outcome, std::move(kept)});
  EXPECT_TRUE(id) << id.error().message;
  return id.value_or(-1);
}

std::vector<std::int64_t> ids(Store& store, const RunFilter& filter = {}) {
  const auto runs = store.runs(filter);
  EXPECT_TRUE(runs) << runs.error().message;
  std::vector<std::int64_t> numbers;
  for (const RecordedRun& run : *runs) numbers.push_back(run.id);
  return numbers;
}

std::string whole_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_F(StoreTest, GivesBackWhatWasRecorded) {
  Store store = open();
  const std::int64_t id = record(store, "a", 1'700'000'000'123);
  const Result<WholeRun> whole = store.run(id);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->run.profile, "a");
  EXPECT_EQ(whole->run.started_unix_ms, 1'700'000'000'123);
  EXPECT_EQ(whole->run.status, "ok");
  const auto json = parse_json(whole->run.record);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["duration_ms"], 120);
  EXPECT_EQ(whole->uses[0].used, 5 * kMiB);
  EXPECT_EQ(whole->uses[0].cap, 256 * kMiB);
  EXPECT_FALSE(whole->kept);
}

TEST_F(StoreTest, KeepsNoOutputUnlessAsked) {
  {
    Store store = open();
    record(store, "a");
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/belljar")) {
    EXPECT_THAT(whole_file(entry.path()), testing::Not(HasSubstr("what the program wrote"))) << entry.path();
  }
  Store store = open();
  const std::int64_t id = record(store, "a", 1'000, RunStatus::ok,
                                 KeptTexts{std::string("print\0()", 8), std::string(kKeptBytesMax + 5, 'x'), "err"});
  const Result<WholeRun> whole = store.run(id);
  ASSERT_TRUE(whole && whole->kept);
  EXPECT_EQ(whole->kept->program, std::string("print\0()", 8));
  EXPECT_EQ(whole->kept->standard_output.size(), kKeptBytesMax);
  EXPECT_EQ(whole->kept->standard_error, "err");
}

TEST_F(StoreTest, IsForItsOwnerAlone) {
  const mode_t before = ::umask(0);
  {
    Store store = open();
    record(store, "a");
    ::umask(before);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      EXPECT_EQ(entry.status().permissions() & std::filesystem::perms(0077), std::filesystem::perms::none)
          << entry.path();
    }
  }
  ASSERT_EQ(::chmod((folder_ + "/belljar").c_str(), 0777), 0);
  const Result<Store> refused = Store::open(file_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("can be written by others"));
}

TEST_F(StoreTest, Filters) {
  Store store = open();
  record(store, "a", 100);
  record(store, "b", 200, RunStatus::timeout);
  record(store, "a", 300, RunStatus::timeout);
  EXPECT_THAT(ids(store), ElementsAre(3, 2, 1));
  EXPECT_THAT(ids(store, {.profile = "a"}), ElementsAre(3, 1));
  EXPECT_THAT(ids(store, {.status = "timeout"}), ElementsAre(3, 2));
  EXPECT_THAT(ids(store, {.profile = "a", .status = "timeout"}), ElementsAre(3));
  EXPECT_THAT(ids(store, {.since_unix_ms = 200}), ElementsAre(3, 2));
  EXPECT_THAT(ids(store, {.count_max = 1}), ElementsAre(3));
  EXPECT_THAT(store.profiles().value(), ElementsAre("a", "b"));
}

TEST_F(StoreTest, UsesOfAProfile) {
  Store store = open();
  record(store, "a", 100);
  record(store, "a", 200, RunStatus::memory);
  record(store, "b", 300);
  const auto uses = store.uses("a", 0);
  ASSERT_TRUE(uses);
  ASSERT_EQ(uses->size(), 2u);
  EXPECT_EQ((*uses)[0].uses.size(), limit_rows().size());
  EXPECT_EQ((*uses)[0].uses[0].used, 5 * kMiB);
  EXPECT_FALSE((*uses)[0].uses[0].struck);
  EXPECT_TRUE((*uses)[1].uses[0].is_censored);
  EXPECT_EQ(store.uses("a", 150)->size(), 1u);
  EXPECT_THAT(store.uses("a", 500).value(), IsEmpty());
}

TEST_F(StoreTest, SaysWhatIsNotThere) {
  EXPECT_EQ(Store::open_existing(file_).error().code, ErrorCode::no_record);
  Store store = open();
  EXPECT_EQ(store.run(5).error().code, ErrorCode::no_record);
  record(store, "analysis");
  const auto uses = store.uses("anlysis", 0);
  ASSERT_FALSE(uses);
  EXPECT_EQ(uses.error().code, ErrorCode::no_record);
  EXPECT_THAT(uses.error().message, HasSubstr("did you mean analysis?"));
}

TEST_F(StoreTest, ForgetsByAge) {
  Store store = open({.age_ms_max = 1000});
  record(store, "a", 10'000);
  record(store, "b", 10'900);
  record(store, "c", 11'500);
  EXPECT_THAT(ids(store), ElementsAre(3, 2));
}

TEST_F(StoreTest, ForgetsByCountOfEachProfile) {
  Store store = open({.runs_max = 3});
  record(store, "b");
  for (int i = 0; i < 5; ++i) record(store, "a");
  EXPECT_THAT(ids(store), ElementsAre(6, 5, 4, 1));
  record(store, "a");
  EXPECT_THAT(ids(store), ElementsAre(7, 6, 5, 1));  // numbers are not given twice
}

TEST_F(StoreTest, ForgetsTextsBeforeRuns) {
  Store store = open({.kept_max = 2});
  for (int i = 0; i < 4; ++i) record(store, "a", 1'000, RunStatus::ok, KeptTexts{"p", "o", "e"});
  for (std::int64_t id = 1; id <= 4; ++id) EXPECT_EQ(store.run(id)->kept.has_value(), id > 2) << id;
}

TEST_F(StoreTest, WritersAtOnceLoseNothing) {
  constexpr int kWriters = 8;
  constexpr int kRuns = 25;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (int i = 0; i < kRuns; ++i) {
        Result<Store> store = Store::open(file_);  // the first of them makes it, all at the same time
        const Outcome outcome = finished();
        if (!store || !store->record({"p" + std::to_string(writer), 1'000, &outcome, std::nullopt})) ::_exit(1);
      }
      ::_exit(0);
    }
    writers.push_back(pid);
  }
  for (const pid_t pid : writers) {
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  Store store = open();
  EXPECT_EQ(ids(store).size(), static_cast<std::size_t>(kWriters * kRuns));
}

// A writer is killed at moments that drift through its whole work; what it said was recorded must be there, whole.
TEST_F(StoreTest, SurvivesKilledWriters) {
  std::int64_t reported = 0;
  for (int round = 0; round < 60; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(ends[0]);
      Result<Store> store = Store::open(file_);
      while (store) {
        const Outcome outcome = finished();
        const Result<std::int64_t> id = store->record({"a", 1'000, &outcome, KeptTexts{"p", "o", "e"}});
        if (!id || ::write(ends[1], &*id, sizeof *id) != sizeof *id) ::_exit(1);
      }
      ::_exit(1);
    }
    ::close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(700 * round));
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the writer gave up by itself";
    std::int64_t id = 0;
    while (::read(ends[0], &id, sizeof id) == sizeof id) reported = id;
    ::close(ends[0]);
  }
  ASSERT_GT(reported, 0);
  Store store = open();
  const std::vector<std::int64_t> found = ids(store);
  EXPECT_GE(found.front(), reported);
  EXPECT_EQ(found.size(), static_cast<std::size_t>(found.front()));  // none is missing
  for (const std::int64_t id : found) {
    const auto whole = store.run(id);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->uses[0].used, 5 * kMiB);
  }
  Database database = *Database::open(file_, DatabaseMode::existing);
  Statement check = *database.prepare("PRAGMA integrity_check");
  ASSERT_TRUE(check.step());
  EXPECT_EQ(check.text(0), "ok");
}

// As runs do it: each opens the store, records and closes it.
TEST_F(StoreTest, TheLogStaysSmall) {
  for (int i = 0; i < 100; ++i) {
    Store store = open();
    record(store, "a");
  }
  EXPECT_LT(std::filesystem::file_size(file_ + "-wal"), 1u << 20);
}

TEST_F(StoreTest, RefusesWhatIsNoDatabase) {
  std::filesystem::create_directories(folder_ + "/belljar");
  std::ofstream(file_) << std::string(5000, 'x');
  const Result<Store> store = Store::open(file_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::store_failed);
  EXPECT_THAT(store.error().message, HasSubstr("move the file away"));
}

// What, where, why, and what would be right.
TEST_F(StoreTest, SaysWhatItCanNotUse) {
  const auto refusal = [&](const auto& prepare) {
    std::filesystem::remove_all(folder_ + "/belljar");
    std::filesystem::create_directories(folder_ + "/belljar");
    std::filesystem::permissions(folder_ + "/belljar", std::filesystem::perms::owner_all);
    prepare();
    Result<Store> store = Store::open(file_);
    if (store) {
      const Outcome outcome = finished();
      const Result<std::int64_t> id = store->record({"a", 1'000, &outcome, std::nullopt});
      EXPECT_FALSE(id);
      return id ? std::string() : id.error().message;
    }
    EXPECT_EQ(store.error().code, ErrorCode::store_failed);
    return store.error().message;
  };
  const std::string what = "the record of runs " + file_;
  EXPECT_EQ(refusal([&] { std::filesystem::create_directory(file_); }),
            what +
                " can't be opened: unable to open database file (Is a directory); it must be a file of yours, in a "
                "folder that you can write to");
  const std::string others = refusal([&] {
    Database database = *Database::open(file_, DatabaseMode::create);
    const std::string form = std::to_string(migrations().size());
    ASSERT_TRUE(database.execute(("CREATE TABLE theirs (x); PRAGMA user_version = " + form).c_str()));
  });
  EXPECT_EQ(others, what + " can't be used: no such table: runs; move the file away to begin anew");
  EXPECT_EQ(refusal([&] { std::ofstream(file_) << std::string(5000, 'x'); }),
            what + " can't be opened: file is not a database; move the file away to begin anew");
  EXPECT_EQ(refusal([&] { std::filesystem::create_symlink("/etc/hostname", file_); }),
            what + " can't be opened: file is not a database; it is a symbolic link; remove that to begin anew");
  EXPECT_EQ(refusal([&] { ::mkfifo(file_.c_str(), 0600); }),
            what + " can't be opened: it is no plain file; remove it to begin anew");
}

TEST_F(StoreTest, RefusesANewerForm) {
  {
    Store store = open();
  }
  ASSERT_TRUE(Database::open(file_, DatabaseMode::existing)->execute("PRAGMA user_version = 99"));
  const Result<Store> store = Store::open(file_);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, HasSubstr("newer Belljar"));
}

// Each older form, with a row in it, becomes the newest without losing the row.
TEST_F(StoreTest, BringsOlderFormsUpToDate) {
  for (std::size_t version = 0; version < migrations().size(); ++version) {
    std::filesystem::remove_all(folder_ + "/belljar");
    std::filesystem::create_directories(folder_ + "/belljar");
    std::filesystem::permissions(folder_ + "/belljar", std::filesystem::perms::owner_all);
    {
      Database database = *Database::open(file_, DatabaseMode::create);
      for (std::size_t i = 0; i < version; ++i) ASSERT_TRUE(database.execute(migrations()[i]));
      ASSERT_TRUE(database.execute(("PRAGMA user_version = " + std::to_string(version)).c_str()));
      if (version > 0) {
        ASSERT_TRUE(database.execute("INSERT INTO runs VALUES (7, 'old', 5, 'ok', '{}')"));
      }
    }
    Store store = open();
    record(store, "new");
    EXPECT_EQ(ids(store, {.profile = "old"}), version > 0 ? std::vector<std::int64_t>{7} : std::vector<std::int64_t>{});
    EXPECT_EQ(ids(store, {.profile = "new"}).size(), 1u);
  }
}

// A Belljar with other limits wrote it: what is not known is passed over, what is missing is not measured.
TEST_F(StoreTest, TakesLimitsOfAnotherVersion) {
  Store store = open();
  const std::int64_t id = record(store, "a");
  Database database = *Database::open(file_, DatabaseMode::existing);
  ASSERT_TRUE(database.execute("DELETE FROM limit_uses WHERE name = 'tasks'"));
  ASSERT_TRUE(database.execute("INSERT INTO limit_uses VALUES (1, 'of_the_future', 5, 5, 0, 0)"));
  const auto uses = store.uses("a", 0);
  ASSERT_TRUE(uses);
  ASSERT_EQ(uses->size(), 1u);
  EXPECT_EQ(uses->front().id, id);
  const auto row = std::ranges::find(limit_rows(), "tasks", &LimitRow::name);
  EXPECT_FALSE(uses->front().uses[static_cast<std::size_t>(row - limit_rows().begin())].used);
}

TEST(StoreFile, FollowsTheEnvironment) {
  EXPECT_EQ(store_file([](const char* name) -> const char* {
              return std::string_view(name) == "XDG_STATE_HOME" ? "/s" : "/home/u";
            }),
            "/s/belljar/runs.db");
  EXPECT_EQ(store_file([](const char* name) -> const char* {
              return std::string_view(name) == "XDG_STATE_HOME" ? "relative" : "/home/u";
            }),
            "/home/u/.local/state/belljar/runs.db");
  EXPECT_FALSE(store_file([](const char*) -> const char* { return nullptr; }));
}

}  // namespace
}  // namespace belljar
