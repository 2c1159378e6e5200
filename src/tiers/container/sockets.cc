#include "tiers/container/sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "spec/errors.h"

namespace belljar::container {
namespace {

constexpr std::size_t kEntriesMax = 4'000'000;
constexpr std::size_t kSocketsMax = 1000;
constexpr int kDepthMax = 200;

class SocketSearch {
 public:
  // What can't be opened here can't be opened by the program either, which has no more rights.
  Result<void> look_into(int parent_fd, const char* name, const std::string& path, int depth) {
    auto opened = open_at(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!opened) return {};
    DIR* const stream = ::fdopendir(opened->get());
    if (stream == nullptr) return {};
    (void)opened->release();
    const Result<void> looked = look_at_entries(stream, path, depth);
    ::closedir(stream);
    return looked;
  }

  std::vector<std::string> take() { return std::move(sockets_); }

 private:
  Result<void> look_at_entries(DIR* stream, const std::string& path, int depth) {
    const auto refuse = [](std::string why) { return fail(ErrorCode::bad_mount, std::move(why)); };
    if (depth > kDepthMax) return refuse(fmt::format("folders are nested more than {} deep", kDepthMax));
    while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++entries_ > kEntriesMax) {
        return refuse(
            fmt::format("it holds more than {} files, too many to look for sockets of the host among them; "
                        "mount a part of it",
                        kEntriesMax));
      }
      unsigned char type = entry->d_type;
      struct stat status{};
      if (type == DT_UNKNOWN && ::fstatat(::dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        type = IFTODT(status.st_mode);
      }
      if (type == DT_SOCK) {
        sockets_.push_back(path + entry->d_name);
        if (sockets_.size() > kSocketsMax) return refuse(fmt::format("it holds more than {} sockets", kSocketsMax));
      } else if (type == DT_DIR) {
        TRY_VOID(look_into(::dirfd(stream), entry->d_name, path + entry->d_name + "/", depth + 1));
      }
    }
    return {};
  }

  std::size_t entries_ = 0;
  std::vector<std::string> sockets_;
};

}  // namespace

Result<std::vector<std::string>> sockets_below(int folder_fd) {
  SocketSearch search;
  TRY_VOID(search.look_into(folder_fd, ".", "", 0));
  return search.take();
}

}  // namespace belljar::container
