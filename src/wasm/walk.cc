#include "wasm/walk.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

namespace belljar::wasm {
namespace {

constexpr unsigned kLinksMax = 40;  // as the kernel has it, path_resolution(7)
constexpr std::size_t kDepthMax = 256;
constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW;

// Nothing where `name` is no link.
std::expected<std::string, int> read_link(int folder_fd, const char* name) {
  std::array<char, PATH_MAX> text;
  const ssize_t size = ::readlinkat(folder_fd, name, text.data(), text.size());
  if (size < 0) return std::unexpected(errno);
  if (static_cast<std::size_t>(size) == text.size()) return std::unexpected(ENAMETOOLONG);
  return std::string(text.data(), static_cast<std::size_t>(size));
}

// The folders from the beginning to where the walk has come; the first one is not ours.
class Trail {
 public:
  explicit Trail(int first_fd) : first_fd_(first_fd) {}

  int last() const { return below_.empty() ? first_fd_ : below_.back().get(); }

  WasiErrno up() {
    if (below_.empty()) return WasiErrno::notcapable;
    below_.pop_back();
    return WasiErrno::success;
  }

  WasiErrno into(const char* name) {
    if (below_.size() >= kDepthMax) return WasiErrno::nametoolong;
    auto folder = open_at(last(), name, kFolderFlags);
    if (!folder) return wasi_errno(folder.error().value);
    below_.push_back(std::move(*folder));
    return WasiErrno::success;
  }

  // Gives the last folder away.
  std::expected<Fd, WasiErrno> take() {
    if (!below_.empty()) return std::move(below_.back());
    auto copy = open_at(first_fd_, ".", kFolderFlags);
    if (!copy) return std::unexpected(wasi_errno(copy.error().value));
    return std::move(*copy);
  }

 private:
  int first_fd_;
  std::vector<Fd> below_;
};

// Takes the first component off; empty at the end.
std::string take_component(std::string* rest) {
  const std::size_t begin = rest->find_first_not_of('/');
  if (begin == std::string::npos) return {};
  const std::size_t end = std::min(rest->find('/', begin), rest->size());
  std::string component = rest->substr(begin, end - begin);
  rest->erase(0, end);
  return component;
}

bool is_last(const std::string& rest) {
  return rest.find_first_not_of('/') == std::string::npos;
}

}  // namespace

std::expected<Place, WasiErrno> walk(int folder_fd, std::string_view path, LastLink last) {
  if (path.empty()) return std::unexpected(WasiErrno::noent);
  if (path.size() >= PATH_MAX) return std::unexpected(WasiErrno::nametoolong);
  if (path.find('\0') != std::string_view::npos) return std::unexpected(WasiErrno::ilseq);
  if (path[0] == '/') return std::unexpected(WasiErrno::notcapable);
  Trail trail(folder_fd);
  std::string rest(path);
  std::string name = ".";
  unsigned links = 0;
  bool must_be_folder = false;
  while (true) {
    const std::string component = take_component(&rest);
    if (component.empty()) break;
    must_be_folder = !rest.empty();
    name = ".";
    if (component == ".") continue;
    if (component == "..") {
      if (const WasiErrno error = trail.up(); error != WasiErrno::success) return std::unexpected(error);
      continue;
    }
    const bool is_end = is_last(rest);
    if (!is_end || last == LastLink::follow || must_be_folder) {
      const auto link = read_link(trail.last(), component.c_str());
      if (link) {
        if (++links > kLinksMax) return std::unexpected(WasiErrno::loop);
        if (link->starts_with('/')) return std::unexpected(WasiErrno::notcapable);
        rest.insert(0, *link);
        continue;
      }
      // EINVAL: it is there and no link. What is not there may be made.
      if (link.error() != EINVAL && !(is_end && link.error() == ENOENT)) {
        return std::unexpected(wasi_errno(link.error()));
      }
    }
    name = component;
    if (is_end) break;
    if (const WasiErrno error = trail.into(component.c_str()); error != WasiErrno::success) {
      return std::unexpected(error);
    }
  }
  auto folder = trail.take();
  if (!folder) return std::unexpected(folder.error());
  return Place{std::move(*folder), std::move(name), must_be_folder};
}

std::expected<Fd, WasiErrno> walk_and_open(int folder_fd, std::string_view path, LastLink last, int flags,
                                           unsigned mode) {
  const auto place = walk(folder_fd, path, last);
  if (!place) return std::unexpected(place.error());
  if (place->must_be_folder) flags |= O_DIRECTORY;
  auto file = open_at(place->folder.get(), place->name.c_str(), flags | O_NOFOLLOW | O_NOCTTY, mode);
  if (!file) return std::unexpected(wasi_errno(file.error().value));
  return std::move(*file);
}

}  // namespace belljar::wasm
