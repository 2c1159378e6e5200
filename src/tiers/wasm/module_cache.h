// Compiled modules, kept where only this user writes. What is found is what was put there, or it is not found: each
// entry ends with its own digest, and one that is damaged is removed. Any number of processes and threads may use one
// folder at once: each name is given once, what is found is locked while its descriptor is open, and what is locked is
// not removed (flock(2); where a file system has no such locks, an entry may be gone before it is mounted).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "spec/limits.h"

namespace belljar::wasm {

// The file begins as the compiled module does.
struct CachedModule {
  Fd file;           // for reading; while it is open nobody removes the entry
  std::string path;  // absolute
};

class ModuleCache {
 public:
  // Below cache_folder(). Errors: host_unsupported, where there can be none.
  static Result<ModuleCache> open();
  static Result<ModuleCache> open_at(const std::string& path);

  // A `key` names the module and all that its compiling depends on: letters and digits.

  // Looks at no more than whether there is an entry.
  bool has(const std::string& key) const;

  std::optional<CachedModule> find(const std::string& key) const;

  // An entry of that name that is whole stays, and is what comes back. The oldest ones make room. Errors:
  // host_unsupported, no_resources.
  Result<CachedModule> put(const std::string& key, std::string_view compiled) const;

  // Removes what writers left that were killed; returns how many.
  std::uint64_t sweep() const;

  static constexpr std::size_t kEntriesMax = 256;
  static constexpr std::uint64_t kBytesMax = 1 * kGiB;  // of all entries together
  static constexpr std::uint64_t kEntryBytesMax = 1 * kGiB;

 private:
  ModuleCache(Fd folder, std::string path) : folder_(std::move(folder)), path_(std::move(path)) {}
  Fd lock() const;
  void make_room(std::uint64_t bytes) const;
  Result<Fd> write_new(const std::string& name, const std::string& key, std::string_view compiled) const;
  void remove_damaged(const std::string& key, const Fd& file) const;

  Fd folder_;  // O_PATH
  std::string path_;
};

}  // namespace belljar::wasm
