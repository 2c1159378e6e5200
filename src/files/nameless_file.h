// A new file of the host's that gets its name when it is whole: of one that was not finished nothing is left, however
// this process ends.
#pragma once

#include <string>

#include "base/fd.h"

namespace belljar {

// A file without a name on the file system of `folder_fd`, for writing, with `mode` less the umask (O_TMPFILE of
// open(2)). Errors: EOPNOTSUPP where the file system has no such.
SysResult<Fd> make_nameless_file(int folder_fd, unsigned mode);

// Gives it a name that is free. Needs /proc and no privilege (linkat(2)). Errors: EEXIST.
SysResult<void> link_nameless_file(int file_fd, int folder_fd, const std::string& name);

}  // namespace belljar
