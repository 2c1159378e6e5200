// Fetching files out of a sandbox (SandboxSpec::collect): once every process of it is gone, regular files and folders
// are copied from its writable places to folders of the host's. What is there is hostile: no link is followed, nothing
// else is opened, and every loop is bounded (docs/collect.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "files/target_folder.h"
#include "spec/outcome.h"
#include "spec/sandbox_spec.h"

namespace belljar {

// Folders deeper than this below a destination are left behind: each one costs two descriptors while it is read.
inline constexpr unsigned kCollectDepthMax = 100;

// Where a CollectSpec's files go. Opened before the program starts, so that a folder that can't be used is a refusal,
// and so that the program can't change which folder is meant.
class CollectDestination {
 public:
  // Errors: bad_collect.
  static Result<CollectDestination> open(const CollectSpec& spec);

  TargetFolder& folder() { return *folder_; }

  // The folder's own name, as far as it can protect what is in it (protected.h).
  const std::string& name() const { return name_; }

 private:
  std::unique_ptr<TargetFolder> parent_;  // where the folder is still missing
  std::unique_ptr<TargetFolder> folder_;
  std::string name_;
};

Result<std::vector<CollectDestination>> open_destinations(const std::vector<CollectSpec>& specs);

// A place of the sandbox from which files are fetched.
struct CollectPlace {
  std::string path;  // inside, such as /tmp
  int folder_fd;     // O_PATH; shows nothing but the sandbox's own files
};

struct Collected {
  std::vector<FileRecord> files;
  std::vector<SkippedFile> skipped;
  bool truncated = false;
};

// `destinations` belong to spec.collect, in its order. Stops once `cancel_fd` is readable (-1: never).
Collected collect_files(const SandboxSpec& spec, const std::vector<CollectPlace>& places,
                        std::vector<CollectDestination>& destinations, int cancel_fd);

}  // namespace belljar
