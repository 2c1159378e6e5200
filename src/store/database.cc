#include "store/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/fd.h"
#include "base/utf8.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::chrono::milliseconds kPatience{10'000};
// Written pages wait in the log beside the database; at this many they are moved over. Moving waits for the disk, and
// the first to open the database reads the whole log: a run writes some ten pages.
constexpr int kLogPagesMax = 100;

// What to do about a failure; empty where there is nothing that a user could. https://sqlite.org/rescode.html
std::string_view remedy(int code, std::string_view file) {
  struct stat status{};
  const bool is_link = ::lstat(std::string(file).c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  switch (code & 0xFF) {  // the rest of an extended code says more of the place in SQLite
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:  // a table that is not there: another program's database
      return is_link ? "it is a symbolic link; remove that to begin anew" : "move the file away to begin anew";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process has held it for ten seconds; end that one, or wait";
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return "you must be able to write to it, to the -wal and -shm files beside it, and to their folder";
    case SQLITE_CANTOPEN:
      return "it must be a file of yours, in a folder that you can write to";
    case SQLITE_FULL:
      return "make room on its disk";
    case SQLITE_IOERR:
      return "look after its disk";
    default:
      return "";
  }
}

// `done` is what was to be done with the file: "opened", "used", "read", "written".
std::unexpected<Error> failed(sqlite3* connection, std::string_view file, std::string_view done) {
  const int code = ::sqlite3_errcode(connection);
  const int error = ::sqlite3_system_errno(connection);
  const bool is_of_system = (code & 0xFF) == SQLITE_CANTOPEN || (code & 0xFF) == SQLITE_IOERR;
  std::string message = fmt::format("the record of runs {} can't be {}: {}", file, done, ::sqlite3_errmsg(connection));
  if (is_of_system && error != 0) message += fmt::format(" ({})", errno_text(error));
  if (const std::string_view advice = remedy(code, file); !advice.empty()) message += fmt::format("; {}", advice);
  return fail(ErrorCode::store_failed, std::move(message));
}

std::string_view file_of(sqlite3* connection) {
  const char* const file = ::sqlite3_db_filename(connection, "main");
  return file == nullptr ? "" : file;
}

// Called while another connection holds a lock: waits, a little longer each time, until patience ends.
int wait_for_lock(void*, int tries) {
  // SQLite says only how often it has called. 1, 2, 3 ... 25 ms, then 25 ms each: so the number tells the time.
  constexpr int kLongestWaitMs = 25;
  const int rising = std::min(tries, kLongestWaitMs);
  const int waited_ms = rising * (rising + 1) / 2 + (tries - rising) * kLongestWaitMs;
  if (waited_ms >= kPatience.count()) return 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(std::min(tries + 1, kLongestWaitMs)));
  return 1;
}

// Called after each commit. SQLite's own way would only begin the log anew in the connection that emptied it before,
// and here each makes one commit. What fails is tried again after the next commit.
int empty_log(void*, sqlite3* connection, const char* name, int pages) {
  if (pages < kLogPagesMax) return SQLITE_OK;
  (void)::sqlite3_wal_checkpoint_v2(connection, name, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  return SQLITE_OK;
}

Result<void> check_is_no_pipe(const std::string& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return {};
  return fail(ErrorCode::store_failed,
              fmt::format("the record of runs {} can't be opened: it is no plain file; remove it to begin anew", file));
}

// So that only its owner can read it, whatever the umask; the files that SQLite puts beside it get the same mode.
Result<void> create_private(const std::string& file) {
  const auto made = open_at(AT_FDCWD, file.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (made) return {};
  if (made.error().value == EEXIST) return check_is_no_pipe(file);
  return fail(ErrorCode::store_failed,
              fmt::format("the record of runs {} can't be made: {}; set XDG_STATE_HOME to a folder that you can write",
                          file, errno_text(made.error().value)));
}

// The write-ahead log lets readers go on while one writes, and keeps what was committed when a process is killed.
// Changing to it can answer "busy" at once where others do the same (no wait_for_lock), hence the tries.
Result<void> use_log(sqlite3* connection, const std::string& file) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    const int code = ::sqlite3_exec(connection, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return {};
    if (code != SQLITE_BUSY || std::chrono::steady_clock::now() >= end) {
      return failed(connection, file, "opened");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

Statement& Statement::bind(int index, std::int64_t value) {
  ::sqlite3_bind_int64(statement_.get(), index, value);
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  ::sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_null(int index) {
  ::sqlite3_bind_null(statement_.get(), index);
  return *this;
}

Statement& Statement::bind(int index, std::optional<std::uint64_t> value) {
  if (!value) return bind_null(index);
  return bind(index, static_cast<std::int64_t>(std::min<std::uint64_t>(*value, INT64_MAX)));
}

Statement& Statement::bind_blob(int index, std::string_view bytes) {
  ::sqlite3_bind_blob64(statement_.get(), index, bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}

Result<bool> Statement::step() {
  const int code = ::sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  ::sqlite3_reset(statement_.get());
  if (code == SQLITE_DONE) return false;
  sqlite3* const connection = ::sqlite3_db_handle(statement_.get());
  return failed(connection, file_of(connection), ::sqlite3_stmt_readonly(statement_.get()) != 0 ? "read" : "written");
}

Result<void> Statement::run() {
  while (TRY(step())) {
  }
  return {};
}

std::int64_t Statement::number(int column) const {
  return ::sqlite3_column_int64(statement_.get(), column);
}

std::optional<std::uint64_t> Statement::optional_number(int column) const {
  if (::sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number(column), 0));
}

std::string Statement::text(int column) const {
  const void* const bytes = ::sqlite3_column_blob(statement_.get(), column);
  const int size = ::sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? "" : std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

Result<Database> Database::open(const std::string& file, DatabaseMode mode) {
  TRY_VOID(mode == DatabaseMode::create ? create_private(file) : check_is_no_pipe(file));
  sqlite3* connection = nullptr;
  const int code = ::sqlite3_open_v2(file.c_str(), &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(connection);
  if (connection == nullptr) return fail(ErrorCode::store_failed, "no memory is left for the record of runs");
  if (code != SQLITE_OK) return failed(connection, file, "opened");
  ::sqlite3_busy_handler(connection, wait_for_lock, nullptr);
  // Closing must not wait for the disk; a process that is killed leaves the log lying too.
  ::sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  ::sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  ::sqlite3_wal_hook(connection, empty_log, nullptr);
  TRY_VOID(use_log(connection, file));
  // Only a power cut can lose the last runs then, and even that does not harm the database.
  TRY_VOID(database.execute("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON"));
  return database;
}

Result<void> Database::execute(const char* sql) {
  if (::sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return failed(connection_.get(), file_of(connection_.get()), "written");
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      ::sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return failed(connection_.get(), file_of(connection_.get()), "used");
  return Statement(statement);
}

Result<WriteTransaction> WriteTransaction::begin(Database& database) {
  TRY_VOID(database.execute("BEGIN IMMEDIATE"));
  return WriteTransaction(&database);
}

Result<void> WriteTransaction::commit() {
  TRY_VOID(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

WriteTransaction::~WriteTransaction() {
  if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

}  // namespace belljar
