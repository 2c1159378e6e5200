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
// it.
SysResult<OwnFile> open_own_program(std::string_view name);

// "neither beside this one nor in FOLDER", for errors.
std::string own_program_places();

}  // namespace belljar::host
