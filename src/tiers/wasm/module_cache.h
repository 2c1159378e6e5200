// Compiled modules, kept where only this user writes. What is found is what was put there, or it is not found: each
// entry ends with its own digest, and one that is damaged is removed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace belljar::wasm {

// The file begins as the compiled module does.
struct CachedModule {
  Fd file;           // for reading
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

  // Takes the place of an entry of that name. The oldest ones make room. Errors: host_unsupported, no_resources.
  Result<CachedModule> put(const std::string& key, std::string_view compiled) const;

 private:
  ModuleCache(Fd folder, std::string path) : folder_(std::move(folder)), path_(std::move(path)) {}
  void make_room() const;

  Fd folder_;  // O_PATH
  std::string path_;
};

}  // namespace belljar::wasm
