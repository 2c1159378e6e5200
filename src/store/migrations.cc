#include "store/migrations.h"

#include <fmt/format.h>

#include "spec/errors.h"

namespace belljar {
namespace {

constexpr const char* kMigrations[] = {
    // AUTOINCREMENT: the number of a run that was forgotten is not given again. `limit_uses` has a row for each limit
    // that there was, so that a new limit needs no new form.
    R"sql(
      CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        profile TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        status TEXT NOT NULL,
        record TEXT NOT NULL
      ) STRICT;
      CREATE INDEX runs_by_profile ON runs (profile, id);
      CREATE INDEX runs_by_start ON runs (started_ms);
      CREATE TABLE limit_uses (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        cap INTEGER NOT NULL,
        used INTEGER,
        struck INTEGER NOT NULL,
        censored INTEGER NOT NULL,
        PRIMARY KEY (run, name)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE kept (
        run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        program BLOB NOT NULL,
        standard_output BLOB NOT NULL,
        standard_error BLOB NOT NULL
      ) STRICT;
    )sql",
};

Result<std::int64_t> version_of(Database& database) {
  Statement select = TRY(database.prepare("PRAGMA user_version"));
  TRY_VOID(select.step());
  return select.number(0);
}

}  // namespace

std::span<const char* const> migrations() {
  return kMigrations;
}

Result<void> migrate(Database& database, const std::string& file) {
  constexpr std::int64_t kNewest = std::size(kMigrations);
  if (TRY(version_of(database)) == kNewest) return {};
  WriteTransaction transaction = TRY(WriteTransaction::begin(database));
  const std::int64_t version = TRY(version_of(database));  // another process may have been first
  if (version > kNewest || version < 0) {
    return fail(
        ErrorCode::store_failed,
        fmt::format("the record of runs {} has form {}, from a newer Belljar; this one knows forms up to {}: use "
                    "the newer one, or move the file away to begin anew",
                    file, version, kNewest));
  }
  for (std::int64_t next = version; next < kNewest; ++next) TRY_VOID(database.execute(kMigrations[next]));
  TRY_VOID(database.execute(fmt::format("PRAGMA user_version = {}", kNewest).c_str()));
  return transaction.commit();
}

}  // namespace belljar
