// Changeset: what a program changed in its workspace, as it is kept until somebody applies or discards it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "files/workspace.h"
#include "spec/outcome.h"

namespace belljar {

struct Change {
  std::string path;                   // below the workspace; no part of it is empty, "." or ".."
  FileKind kind = FileKind::regular;  // regular, folder or link
  FileChange change = FileChange::added;
  std::uint64_t size = 0;
  std::string sha256;          // of a regular file's new content, which the store keeps under this name
  bool is_executable = false;  // of the new file
  std::string link_target;     // of the new link
  FileStamp before;            // what the host had; of modified and deleted
  std::string before_sha256;   // of a file with several names: what is done to another of them changes its times
  bool in_git_folder = false;  // the folder that holds it is a git repository's own, whatever its name

  bool operator==(const Change&) const = default;
};

struct Changeset {
  std::string workspace;  // the path on the host
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t created_ns = 0;  // since the epoch
  std::vector<Change> changes;  // by path, bytewise; where a file gave way to a folder, deleted comes before added

  bool operator==(const Changeset&) const = default;
};

std::string_view file_change_name(FileChange change);

// As JSON. Paths that are not UTF-8 survive.
std::string changeset_to_json(const Changeset& changeset);

// Takes nothing that changeset_to_json() would not have written. Errors: bad_changes.
Result<Changeset> read_changeset(std::string_view text);

}  // namespace belljar
