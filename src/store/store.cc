#include "store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "spec/errors.h"
#include "spec/names.h"
#include "store/migrations.h"

namespace belljar {
namespace {

std::unexpected<Error> store_failed(std::string message) {
  return fail(ErrorCode::store_failed, std::move(message));
}

// The folder must be the caller's own: what others can write there would be taken for a database of ours.
Result<void> make_folder(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    ::mkdir(path.substr(0, slash).c_str(), 0700);  // what could not be made shows when the last one is made
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return store_failed(
        fmt::format("the folder {} for the record of runs can't be made: {}; set XDG_STATE_HOME to a "
                    "folder that you can write",
                    path, errno_text(errno)));
  }
  struct stat status{};
  const auto folder = open_at(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!folder || ::fstat(folder->get(), &status) != 0) {
    return store_failed(
        fmt::format("the record of runs belongs in {}, which is not a folder (a link is not followed)", path));
  }
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return store_failed(
        fmt::format("the folder {} belongs to another user or can be written by others; chown or chmod it", path));
  }
  return {};
}

// The row of limits.def, or its count where a newer or older Belljar had other limits.
std::size_t limit_index(std::string_view name) {
  const auto rows = limit_rows();
  const auto found = std::ranges::find_if(rows, [&](const LimitRow& row) { return row.name == name; });
  return static_cast<std::size_t>(found - rows.begin());
}

std::string_view cut(std::string_view text) {
  return text.substr(0, kKeptBytesMax);
}

RecordedRun read_run(const Statement& row) {
  return {row.number(0), row.text(1), row.number(2), row.text(3), row.text(4)};
}

// A row of limit_uses: name, cap, used, struck and censored, from `column` on.
void read_use(const Statement& row, int column, std::vector<RecordedUse>* uses) {
  const std::size_t index = limit_index(row.text(column));
  if (index == uses->size()) return;
  (*uses)[index] = {row.optional_number(column + 1).value_or(0), row.optional_number(column + 2),
                    row.number(column + 3) != 0, row.number(column + 4) != 0};
}

}  // namespace

Result<std::string> store_file(const char* (*lookup)(const char* name)) {
  const char* const state = lookup("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return std::string(state) + "/belljar/runs.db";
  const char* const home = lookup("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.local/state/belljar/runs.db";
  return store_failed("no place for the record of runs: set HOME or XDG_STATE_HOME to an absolute path");
}

Result<Store> Store::open(const std::string& file, const Retention& retention) {
  TRY_VOID(make_folder(file.substr(0, file.rfind('/'))));
  Database database = TRY(Database::open(file, DatabaseMode::create));
  TRY_VOID(migrate(database, file));
  return Store(std::move(database), retention);
}

Result<Store> Store::open_existing(const std::string& file) {
  if (::access(file.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return fail(ErrorCode::no_record, "no run has been recorded yet; belljar run --profile NAME records them");
  }
  Database database = TRY(Database::open(file, DatabaseMode::existing));
  TRY_VOID(migrate(database, file));
  return Store(std::move(database), {});
}

Result<std::int64_t> Store::record(const NewRun& run) {
  WriteTransaction transaction = TRY(WriteTransaction::begin(database_));
  const StreamContent content = run.kept ? StreamContent::omitted_with_files : StreamContent::omitted_with_words;
  const std::string record = outcome_to_json(*run.outcome, content);
  Statement insert =
      TRY(database_.prepare("INSERT INTO runs (profile, started_ms, status, record) VALUES (?, ?, ?, ?)"));
  insert.bind(1, run.profile).bind(2, run.started_unix_ms).bind(3, status_name(run.outcome->status)).bind(4, record);
  TRY_VOID(insert.run());
  const std::int64_t id = database_.last_row_id();
  TRY_VOID(insert_uses(id, *run.outcome));
  if (run.kept) TRY_VOID(insert_kept(id, *run.kept));
  TRY_VOID(forget_old(run));
  TRY_VOID(transaction.commit());
  return id;
}

Result<void> Store::insert_uses(std::int64_t id, const Outcome& outcome) {
  Statement insert = TRY(
      database_.prepare("INSERT INTO limit_uses (run, name, cap, used, struck, censored) VALUES (?, ?, ?, ?, ?, ?)"));
  for (const LimitUse& use : limit_uses(outcome)) {
    insert.bind(1, id).bind(2, use.row->name).bind(3, std::optional(use.cap)).bind(4, use.used);
    insert.bind(5, std::int64_t{use.struck}).bind(6, std::int64_t{use.is_censored});
    TRY_VOID(insert.run());
  }
  return {};
}

Result<void> Store::insert_kept(std::int64_t id, const KeptTexts& kept) {
  Statement insert =
      TRY(database_.prepare("INSERT INTO kept (run, program, standard_output, standard_error) VALUES (?, ?, ?, ?)"));
  insert.bind(1, id).bind_blob(2, cut(kept.program)).bind_blob(3, cut(kept.standard_output));
  insert.bind_blob(4, cut(kept.standard_error));
  return insert.run();
}

// By the clock of the run that is recorded, so that what is forgotten does not depend on anything else.
Result<void> Store::forget_old(const NewRun& run) {
  Statement aged = TRY(database_.prepare("DELETE FROM runs WHERE started_ms < ?"));
  aged.bind(1, run.started_unix_ms - retention_.age_ms_max);
  TRY_VOID(aged.run());
  Statement beyond =
      TRY(database_.prepare("DELETE FROM runs WHERE profile = ?1 AND id <= "
                            "(SELECT id FROM runs WHERE profile = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)"));
  beyond.bind(1, run.profile).bind(2, retention_.runs_max);
  TRY_VOID(beyond.run());
  if (!run.kept) return {};
  Statement texts =
      TRY(database_.prepare("DELETE FROM kept WHERE run IN (SELECT kept.run FROM kept JOIN runs ON runs.id = kept.run "
                            "WHERE runs.profile = ? ORDER BY kept.run DESC LIMIT -1 OFFSET ?)"));
  texts.bind(1, run.profile).bind(2, retention_.kept_max);
  return texts.run();
}

Result<WholeRun> Store::run(std::int64_t id) {
  Statement select = TRY(database_.prepare("SELECT id, profile, started_ms, status, record FROM runs WHERE id = ?"));
  select.bind(1, id);
  if (!TRY(select.step())) {
    return fail(ErrorCode::no_record,
                fmt::format("there is no run {}; belljar runs lists those that are remembered", id));
  }
  WholeRun whole{read_run(select), std::vector<RecordedUse>(limit_rows().size()), std::nullopt};
  Statement uses = TRY(database_.prepare("SELECT name, cap, used, struck, censored FROM limit_uses WHERE run = ?"));
  uses.bind(1, id);
  while (TRY(uses.step())) read_use(uses, 0, &whole.uses);
  Statement texts = TRY(database_.prepare("SELECT program, standard_output, standard_error FROM kept WHERE run = ?"));
  texts.bind(1, id);
  if (TRY(texts.step())) whole.kept = KeptTexts{texts.text(0), texts.text(1), texts.text(2)};
  return whole;
}

Result<std::vector<RecordedRun>> Store::runs(const RunFilter& filter) {
  Statement select = TRY(database_.prepare(
      "SELECT id, profile, started_ms, status, record FROM runs "
      "WHERE (?1 = '' OR profile = ?1) AND (?2 = '' OR status = ?2) AND started_ms >= ?3 ORDER BY id DESC LIMIT ?4"));
  select.bind(1, filter.profile).bind(2, filter.status).bind(3, filter.since_unix_ms);
  select.bind(4, std::optional<std::uint64_t>(filter.count_max));
  std::vector<RecordedRun> runs;
  while (TRY(select.step())) runs.push_back(read_run(select));
  return runs;
}

Result<std::vector<RecordedUses>> Store::uses(const std::string& profile, std::int64_t since_unix_ms) {
  Statement select = TRY(
      database_.prepare("SELECT id, status, name, cap, used, struck, censored FROM runs JOIN limit_uses ON run = id "
                        "WHERE profile = ? AND started_ms >= ? ORDER BY id"));
  select.bind(1, profile).bind(2, since_unix_ms);
  std::vector<RecordedUses> runs;
  while (TRY(select.step())) {
    const std::int64_t id = select.number(0);
    if (runs.empty() || runs.back().id != id) {
      runs.push_back({id, select.text(1), std::vector<RecordedUse>(limit_rows().size())});
    }
    read_use(select, 2, &runs.back().uses);
  }
  if (!runs.empty()) return runs;
  const std::vector<std::string> known = TRY(profiles());
  if (std::ranges::find(known, profile) != known.end()) return runs;
  const std::vector<std::string_view> names(known.begin(), known.end());
  return fail(ErrorCode::no_record,
              fmt::format("no run of the profile {} is recorded; {}", profile,
                          known.empty() ? "belljar run --profile NAME records them" : name_hint(profile, names)));
}

Result<std::vector<std::string>> Store::profiles() {
  Statement select = TRY(database_.prepare("SELECT DISTINCT profile FROM runs ORDER BY profile"));
  std::vector<std::string> names;
  while (TRY(select.step())) names.push_back(select.text(0));
  return names;
}

}  // namespace belljar
