// Saving one file of a sandbox's in a folder of the host's: whole or not at all.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "spec/outcome.h"
#include "spec/sandbox_spec.h"

namespace belljar {

struct SavedFile {
  std::string sha256;
  FileChange change;
};

struct SaveFailure {
  std::string reason;         // one line, without the file's name
  bool concerns_all = false;  // nothing else can be saved either: the disk is full, the caller stopped it
};

// What it means when a call that makes a file or folder of the host's failed with `error`.
SaveFailure save_failure(int error);

class FileSaver {
 public:
  // Saving stops once `cancel_fd` is readable; -1: never.
  explicit FileSaver(int cancel_fd) : cancel_fd_(cancel_fd), buffer_(kBufferBytes) {}

  // Copies the regular file `source_fd`, whose status is `status`, to `name` in `folder_fd`. It gets that name when it
  // is whole, so that nobody sees a part of it. Holes stay holes. The new file gets the
  // permissions of new files of the caller's, with leave to execute where the source had it. A link in its place is
  // never followed, and only a regular file is ever replaced.
  std::expected<SavedFile, SaveFailure> save(int source_fd, const struct stat& status, int folder_fd,
                                             const std::string& name, ExistingFiles existing);

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

  class Copy;
  bool is_cancelled() const;

  int cancel_fd_;
  unsigned count_ = 0;
  std::vector<char> buffer_;
};

}  // namespace belljar
