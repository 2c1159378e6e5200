#include "wasm/wasi_results.h"

#include <fcntl.h>

namespace belljar::wasm {
namespace {

std::expected<timespec, WasiErrno> chosen_time(std::uint64_t ns, bool is_given, bool is_now) {
  if (is_given && is_now) return std::unexpected(WasiErrno::inval);
  if (is_now) return timespec{0, UTIME_NOW};
  return is_given ? to_timespec(ns) : timespec{0, UTIME_OMIT};
}

}  // namespace

FileStat to_file_stat(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .kind = file_kind_of_mode(status.st_mode),
          .padding = {},
          .links = status.st_nlink,
          .size = static_cast<std::uint64_t>(status.st_size),
          .access_ns = nanoseconds(status.st_atim),
          .modify_ns = nanoseconds(status.st_mtim),
          .change_ns = nanoseconds(status.st_ctim)};
}

std::expected<FileTimes, WasiErrno> to_file_times(std::uint64_t access_ns, std::uint64_t modify_ns,
                                                  std::uint32_t flags) {
  const auto has = [flags](std::uint32_t flag) { return (flags & flag) != 0; };
  const auto access = chosen_time(access_ns, has(fstflag::kAccess), has(fstflag::kAccessNow));
  const auto modify = chosen_time(modify_ns, has(fstflag::kModify), has(fstflag::kModifyNow));
  if (!access || !modify) return std::unexpected(WasiErrno::inval);
  return FileTimes{{*access, *modify}};
}

std::expected<int, WasiErrno> to_host_flags(std::uint32_t fd_flags) {
  using namespace fdflag;
  if ((fd_flags & ~(kAppend | kDsync | kNonblock | kRsync | kSync)) != 0) return std::unexpected(WasiErrno::inval);
  int flags = 0;
  if ((fd_flags & kAppend) != 0) flags |= O_APPEND;
  if ((fd_flags & kDsync) != 0) flags |= O_DSYNC;
  if ((fd_flags & kNonblock) != 0) flags |= O_NONBLOCK;
  if ((fd_flags & (kRsync | kSync)) != 0) flags |= O_SYNC;
  return flags;
}

}  // namespace belljar::wasm
