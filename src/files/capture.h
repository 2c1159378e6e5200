// Capturing what a program changed in its workspace, once every process of the sandbox is gone. What it left is
// hostile: nothing is followed, only regular files are opened, and every loop is bounded.
#pragma once

#include <string>
#include <vector>

#include "files/changeset.h"
#include "files/workspace.h"
#include "spec/outcome.h"
#include "spec/sandbox_spec.h"

namespace belljar {

// How the sandbox's folder shows changes.
enum class WorkspaceView {
  overlay,  // the upper folder of an overlayfs: what is there covers the workspace, character devices 0:0 are whiteouts
  copy,     // all of it: what is missing was deleted
};

struct Captured {
  Changeset changeset;
  std::vector<FileRecord> files;  // the changed regular files, with their paths inside
  std::vector<SkippedFile> skipped;
  bool truncated = false;  // the content of a file could not be kept
};

// Compares `folder_fd` (O_PATH, of the sandbox's own) with the workspace, and keeps new contents in `contents_fd`, each
// under its digest. Stops once `cancel_fd` is readable (-1: never).
Captured capture_changes(const SandboxSpec& spec, const Workspace& before, int folder_fd, WorkspaceView view,
                         int contents_fd, int cancel_fd);

}  // namespace belljar
