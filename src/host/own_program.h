// Programs that were built and installed beside the running one, such as belljar-egress.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace belljar::host {

struct OwnFile {
  Fd opened;         // O_PATH
  std::string path;  // absolute
};

// Beside the running program, where both are built or installed together; else where this library's installation has
// it, or a package of Belljar. A file, or one in a folder, that somebody else than this user, root and the running
// program's owner could have put there is passed over. Errors: EPERM, where there are only such; as openat(2).
SysResult<OwnFile> open_own_program(std::string_view name);

// "neither beside this one nor in FOLDERS", for errors.
std::string own_program_places();

}  // namespace belljar::host
