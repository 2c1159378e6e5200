#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cgroup/cgroup.h"
#include "cli/execute.h"
#include "files/change_store.h"
#include "spec/errors.h"
#include "tiers/container/container.h"
#include "tiers/wasm/wasm.h"

namespace belljar {
namespace {

// What runs that were killed while they took the changes to a workspace left of them; of the caller's own runs.
Result<std::uint64_t> sweep_changes() {
  const auto folder = change_store_folder([](const char* name) -> const char* { return std::getenv(name); });
  if (!folder || ::access(folder->c_str(), F_OK) != 0) return 0;  // there never was a store
  const ChangeStore store = TRY(ChangeStore::open(*folder));
  return store.abandoned_count();
}

}  // namespace

int run_gc() {
  const std::uint64_t removed = sweep_cgroups(is_sandbox_owner_alive) + sweep_modules();
  std::string text = fmt::format("removed what {} killed run{} left behind\n", removed, removed == 1 ? "" : "s");
  const Result<std::uint64_t> sets = sweep_changes();
  if (sets && *sets > 0) {
    text += fmt::format("removed {} unfinished set{} of changes to a workspace\n", *sets, *sets == 1 ? "" : "s");
  }
  const int printed = print(text);
  return sets ? printed : report_error(sets.error(), false);
}

}  // namespace belljar
