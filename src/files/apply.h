// Applying kept changes to the folder of the host that they were made in. The changes are an untrusted program's, and
// the folder is somebody's work: nothing is written that was not looked at, nowhere but beneath the folder, and only
// over what the program itself saw.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "files/change_store.h"

namespace belljar {

// One for all changes at and below a path that are left out for the same reason.
struct LeftOut {
  std::string path;  // below the workspace
  std::string reason;
  std::size_t changes = 1;
};

struct Applied {
  std::vector<Change> applied;
  std::vector<LeftOut> left_out;  // refused, or failed; still kept
};

// Opens the workspace as the set names it. Errors: bad_changes, when there is no such folder any more.
Result<Fd> open_changed_folder(const Changeset& changeset);

// Applies the changes at and below `paths` (none: all), and takes them out of `kept.changeset`. Where the host's side
// of any of them is not as it was when the run began, nothing at all is applied: bad_changes, naming them. Each file
// changes at once or not at all. What is left out: protected paths (protected.def) and symbolic links that `paths` do
// not name, and whatever fails. Applying a set again whose process was killed ends what that one began.
Result<Applied> apply_changes(KeptChangeset& kept, std::span<const std::string> paths);

// Removes what an apply_changes() that was killed between two calls may have left in the workspace.
void clear_leftovers(const KeptChangeset& kept, int workspace_fd);

// How the host's side of a change is now.
enum class HostSide {
  as_before,   // as it was when the run began
  as_changed,  // as the change would have it: it was applied already
  different,
};
HostSide compare_host_side(const Change& change, int workspace_fd);

// The changes at or below one of `paths` (none: all). Errors: bad_changes, for a path where nothing was changed.
Result<std::vector<const Change*>> select_changes(const Changeset& changeset, std::span<const std::string> paths);

}  // namespace belljar
