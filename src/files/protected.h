// Paths on which tools of the host act by themselves (protected.def): what comes out of a sandbox may not be written
// there unasked. One place for what --collect and `belljar changes apply` refuse.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "files/list_folder.h"

namespace belljar {

// A row of protected.def.
struct ProtectedRow {
  std::string_view path;
  std::string_view why;
  bool only_files = false;
};

std::span<const ProtectedRow> protected_rows();

// A name as the most forgiving file system compares it: in lower case, without characters that case-insensitive file
// systems ignore, and without dots, spaces and the names of streams at its end.
std::string name_key(std::string_view name);

// What stands for a folder `name` in the folder that `parent` stands for, where what lies in it is asked about: its
// key, but for folders in which a repository keeps refs and their logs.
std::string folder_key(std::string_view parent, std::string_view name);

// Why a file or folder `name` (as name_key() gives it) in a folder that `parent` stands for is protected; empty where
// it isn't. The folders above it are the caller's to check, from the top down.
std::string_view why_protected(std::string_view parent, std::string_view name, FileKind kind);

// A folder that git takes for a repository, whatever it is called: a bare one, a submodule's, or one that a .git file
// leads to. In such a folder the names of .git/... above are protected.
bool is_git_folder(int folder_fd);

// The `parent` for what lies in such a folder.
inline constexpr std::string_view kGitFolderKey = ".git";

}  // namespace belljar
