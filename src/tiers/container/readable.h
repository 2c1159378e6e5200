// Whether the caller could reach a path without supplementary groups: an unprivileged user can't drop them in the
// sandbox, so a mount must not hand over what only they open.
#pragma once

#include <string>

#include "base/result.h"

namespace belljar::container {

// Checks every folder on the way to `path` (absolute, without links) for search, and `path` itself for reading, with
// the effective uid and gid alone. Errors: bad_mount, naming the part that fails.
Result<void> check_readable_without_groups(const std::string& path);

}  // namespace belljar::container
