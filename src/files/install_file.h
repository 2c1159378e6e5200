// Putting a file in its place in a folder of the host: at once, so that nobody sees a part of it.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/fd.h"

namespace belljar {

struct Installation {
  int content_fd;              // a regular file, open for reading
  int folder_fd;               // O_PATH
  std::string name;            // in the folder
  std::string temporary_name;  // in the folder too; stays behind only if this process is killed between two calls
  bool is_executable = false;
  const struct stat* replaced = nullptr;  // the regular file that must still be there; null: nothing may be there
};

// A new file gets the permissions of new files of the caller's; one that replaces another keeps that one's owner and
// permissions, but for the leave to execute, and without set-id bits. Errors: EEXIST where something is there that was
// not; ESTALE where `replaced` is not there any more.
SysResult<void> install_file(const Installation& installation);

}  // namespace belljar
