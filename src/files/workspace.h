// Workspace: a folder of the host as it was before a program got its view of it (SandboxSpec::workspace). What the
// program changed is told by comparing with this, and later it tells whether the host's side has changed meanwhile.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "files/list_folder.h"

namespace belljar {

// One state of a file: as long as none of it changes, nor does its content (stat(2)).
struct FileStamp {
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  std::uint64_t inode = 0;

  bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const struct stat& status);

// An entry of the folder, and all below it.
struct WorkspaceEntry {
  std::string name;
  FileKind kind = FileKind::unknown;
  FileStamp stamp;
  bool is_executable = false;            // by its owner
  bool has_other_names = false;          // a hard link
  std::string link_target;               // of a symbolic link
  std::vector<WorkspaceEntry> children;  // of a folder that can be read; by name, bytewise

  // Null where there is none.
  const WorkspaceEntry* find(std::string_view child) const;
};

struct Workspace {
  Fd folder;         // O_PATH
  std::string path;  // absolute, without links
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t entries = 0;  // below the root
  WorkspaceEntry root;
};

// Opens the folder as the caller and looks at all that is in it, without following links or going into what is mounted
// there. Errors: bad_workspace.
Result<Workspace> open_workspace(const std::string& path, std::uint64_t entries_max);

}  // namespace belljar
