// SQLite behind Result<T>: the only header that knows the library. https://sqlite.org/c3ref/intro.html
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar {

// One prepared statement. Texts that are bound must live until the statement has been stepped. Errors: store_failed.
class [[nodiscard]] Statement {
 public:
  Statement& bind(int index, std::int64_t value);  // parameters count from 1
  Statement& bind(int index, std::string_view text);
  Statement& bind_null(int index);
  Statement& bind(int index, std::optional<std::uint64_t> value);
  Statement& bind_blob(int index, std::string_view bytes);

  // True when there is a row; false at the end. Afterwards the statement can be bound and stepped anew.
  Result<bool> step();
  // Steps to the end of a statement that gives no rows.
  Result<void> run();

  std::int64_t number(int column) const;  // columns count from 0
  std::optional<std::uint64_t> optional_number(int column) const;
  std::string text(int column) const;  // or a blob's bytes

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

enum class DatabaseMode { create, existing };

// One connection, for one thread. Its statements must go before it.
class [[nodiscard]] Database {
 public:
  // Waits up to ten seconds for other writers, here and in every call. `file` is in a folder that exists.
  static Result<Database> open(const std::string& file, DatabaseMode mode);

  Result<void> execute(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  std::int64_t last_row_id() const { return ::sqlite3_last_insert_rowid(connection_.get()); }

 private:
  struct Close {
    void operator()(sqlite3* connection) const { ::sqlite3_close_v2(connection); }
  };
  Database(sqlite3* connection) : connection_(connection) {}  // NOLINT(google-explicit-constructor): private

  std::unique_ptr<sqlite3, Close> connection_;
};

// A write transaction, begun at once, so that it never has to give way to another writer halfway. Rolled back unless
// committed.
class [[nodiscard]] WriteTransaction {
 public:
  static Result<WriteTransaction> begin(Database& database);
  WriteTransaction(WriteTransaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  WriteTransaction& operator=(WriteTransaction&&) = delete;
  ~WriteTransaction();

  Result<void> commit();

 private:
  explicit WriteTransaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace belljar
