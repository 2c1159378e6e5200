// TargetFolder: a folder of the host that takes in files. It is made, with those above it, when the first file goes in,
// and no step to it follows a link: what lies there may be an earlier program's.
#pragma once

#include <string>

#include "base/fd.h"

namespace belljar {

class TargetFolder {
 public:
  // A folder that is there. `shown` is how messages call it.
  TargetFolder(Fd folder, std::string shown) : fd_(std::move(folder)), shown_(std::move(shown)) {}

  // `name` in `parent`, which must outlive this object.
  TargetFolder(TargetFolder& parent, const std::string& name);
  TargetFolder(TargetFolder& parent, std::string name, std::string shown);

  // The open folder (O_PATH), made if it was missing. Errors: ENOTDIR where something else is in its place.
  SysResult<int> open();

  // The open folder if it is there; -1 if not. Makes nothing.
  int open_existing();

  const std::string& shown() const { return shown_; }

 private:
  Fd fd_;
  TargetFolder* parent_ = nullptr;
  std::string name_;
  std::string shown_;
};

}  // namespace belljar
