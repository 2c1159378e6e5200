#include "wasm/wasi_abi.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace belljar::wasm {
namespace {

struct ErrnoRow {
  int host;
  WasiErrno guest;
};

constexpr ErrnoRow kErrnos[] = {
#define WASI_ERRNO(name, number, host) {host, WasiErrno::name},
#include "wasm/wasi_errno.def"
#undef WASI_ERRNO
};

}  // namespace

WasiErrno wasi_errno(int host_errno) {
  const auto* const row = std::ranges::find(kErrnos, host_errno, &ErrnoRow::host);
  return row == std::end(kErrnos) ? WasiErrno::io : row->guest;
}

FileKind file_kind_of_mode(unsigned mode) {
  if (S_ISDIR(mode)) return FileKind::directory;
  if (S_ISREG(mode)) return FileKind::regular_file;
  if (S_ISLNK(mode)) return FileKind::symbolic_link;
  if (S_ISCHR(mode)) return FileKind::character_device;
  if (S_ISBLK(mode)) return FileKind::block_device;
  return FileKind::unknown;
}

FileKind file_kind_of_entry(unsigned char d_type) {
  return file_kind_of_mode(DTTOIF(d_type));
}

}  // namespace belljar::wasm
