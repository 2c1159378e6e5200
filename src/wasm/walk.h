// Paths as a module gives them, below a folder that it was handed. Each component is looked up by itself and no link is
// followed by the kernel, so that nothing leads out of the folder, whoever moves or replaces what lies in it meanwhile.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "wasm/wasi_abi.h"

namespace belljar::wasm {

// The folder that a path's last component lies in, and that component.
struct Place {
  Fd folder;                    // O_PATH
  std::string name;             // "." where the path names the folder that it begins in; never ".."
  bool must_be_folder = false;  // a slash stood at the end
};

enum class LastLink { follow, keep };

// Errors: not_capable for a path that is absolute or leads out, loop for too many links, and as openat(2).
std::expected<Place, WasiErrno> walk(int folder_fd, std::string_view path, LastLink last);

// walk(), and then the file itself, opened with `flags`.
std::expected<Fd, WasiErrno> walk_and_open(int folder_fd, std::string_view path, LastLink last, int flags,
                                           unsigned mode = 0);

}  // namespace belljar::wasm
