// The names in a folder that a program filled: a bounded number, in order.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/fd.h"

namespace belljar {

enum class FileKind { regular, folder, link, pipe, socket, device, unknown };

// "a symbolic link": for messages.
const char* kind_text(FileKind kind);

// The kind of a mode (stat(2)).
FileKind kind_of_mode(unsigned mode);

struct FolderEntry {
  std::string name;  // any bytes but NUL and "/"; never "." or ".."
  FileKind kind;
};

struct FolderListing {
  std::vector<FolderEntry> entries;  // by name, bytewise
  bool is_cut = false;               // there are more
};

// Reads at most `entries_max` names of the folder `folder_fd`, which is open for reading. No entry is opened.
SysResult<FolderListing> list_folder(int folder_fd, std::size_t entries_max);

}  // namespace belljar
