// Comparing files.
#pragma once

#include <string>

#include "base/fd.h"

namespace belljar {

// Whether two regular files, open for reading, hold the same bytes. False also where one can't be read.
bool have_same_content(int fd, int other_fd);

// The SHA-256 of a regular file that is open for reading.
SysResult<std::string> content_sha256(int fd);

}  // namespace belljar
