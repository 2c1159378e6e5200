#include "wasm/wasi.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace belljar::wasm {
namespace {

constexpr std::size_t kFilesMax = std::size_t{1} << 16;

}  // namespace

void Wasi::add_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    struct stat status{};
    const FileKind kind = ::fstat(fd, &status) == 0 ? file_kind_of_mode(status.st_mode) : FileKind::unknown;
    const std::uint64_t way = fd == STDIN_FILENO ? rights::kRead : rights::kWrite;
    constexpr std::uint64_t kOfFiles = rights::kRead | rights::kWrite | rights::kSeek | rights::kTell;
    files_.push_back(OpenFile{.owned = Fd(fd), .kind = kind, .rights = (rights::kAll & ~kOfFiles) | way});
  }
}

SysResult<void> Wasi::add_folder(const std::string& path) {
  Fd folder = TRY(open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY));
  files_.push_back(OpenFile{.owned = std::move(folder),
                            .kind = FileKind::directory,
                            .rights = rights::kAll,
                            .rights_inheriting = rights::kAll,
                            .preopened_as = path});
  return {};
}

OpenFile* Wasi::find(std::uint32_t fd) {
  return fd < files_.size() && files_[fd] ? &*files_[fd] : nullptr;
}

std::expected<OpenFile*, WasiErrno> Wasi::find_with(std::uint32_t fd, std::uint64_t wanted) {
  OpenFile* const file = find(fd);
  if (file == nullptr) return std::unexpected(WasiErrno::badf);
  if ((file->rights & wanted) != wanted) return std::unexpected(WasiErrno::notcapable);
  return file;
}

std::expected<std::uint32_t, WasiErrno> Wasi::add(OpenFile file) {
  const auto free = std::ranges::find_if(files_, [](const auto& each) { return !each.has_value(); });
  const auto index = static_cast<std::uint32_t>(free - files_.begin());
  if (free != files_.end()) {
    *free = std::move(file);
    return index;
  }
  if (files_.size() >= kFilesMax) return std::unexpected(WasiErrno::mfile);
  files_.emplace_back(std::move(file));
  return index;
}

bool Wasi::close(std::uint32_t fd) {
  if (find(fd) == nullptr) return false;
  files_[fd].reset();
  return true;
}

bool Wasi::renumber(std::uint32_t from, std::uint32_t to) {
  if (find(from) == nullptr || find(to) == nullptr) return false;
  if (from == to) return true;
  files_[to] = std::move(files_[from]);
  files_[from].reset();
  return true;
}

}  // namespace belljar::wasm
