// A folder of the host as a root file system.
#pragma once

#include <string>

#include "base/result.h"
#include "image/tree_writer.h"

namespace belljar {

// Has `writer` make what the folder holds. Returns a SHA-256 over names, metadata and contents. Neither follows links
// nor leaves the folder's file system. Errors: bad_image, with the name of what can't be read; no_resources.
Result<std::string> copy_folder(int folder_fd, TreeWriter& writer);

}  // namespace belljar
