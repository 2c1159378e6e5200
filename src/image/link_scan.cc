#include "image/link_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/fd.h"

namespace belljar {
namespace {

constexpr unsigned kThreadsMax = 4;
constexpr std::size_t kBatch = 32;

// Folders still to be read, shared by the readers. The scan is over when none is left and no reader is at work.
class FolderQueue {
 public:
  explicit FolderQueue(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // Takes up to kBatch folders; none when the scan is over.
  std::vector<std::string> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !folders_.empty() || readers_ == 0; });
    const std::size_t count = std::min(kBatch, folders_.size());
    std::vector<std::string> batch(std::make_move_iterator(folders_.end() - static_cast<std::ptrdiff_t>(count)),
                                   std::make_move_iterator(folders_.end()));
    folders_.resize(folders_.size() - count);
    if (count > 0) ++readers_;
    return batch;
  }

  // Gives back what reading a batch found.
  void finish(std::vector<std::string> found) {
    const std::scoped_lock lock(mutex_);
    folders_.insert(folders_.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
    --readers_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> folders_;
  int readers_ = 0;
};

unsigned char entry_type(int folder_fd, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type;
  struct stat status;
  if (::fstatat(folder_fd, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return DT_UNKNOWN;
  return static_cast<unsigned char>(IFTODT(status.st_mode));
}

void read_folder(int root_fd, const std::string& path, std::vector<std::string>& folders,
                 std::vector<std::string>& links) {
  auto opened = open_at(root_fd, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
  if (!opened) return;
  DIR* const stream = ::fdopendir(opened->get());
  if (stream == nullptr) return;
  const int fd = opened->release();
  while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    const unsigned char type = entry_type(fd, *entry);
    if (type == DT_DIR) folders.push_back(path + '/' + entry->d_name);
    if (type == DT_LNK) links.push_back(path + '/' + entry->d_name);
  }
  ::closedir(stream);
}

void read_until_empty(int root_fd, FolderQueue& queue, std::vector<std::string>& links,
                      const std::function<void()>& on_folder) {
  while (true) {
    const std::vector<std::string> batch = queue.take();
    if (batch.empty()) return;
    std::vector<std::string> found;
    for (const std::string& folder : batch) read_folder(root_fd, folder, found, links);
    queue.finish(std::move(found));
    if (on_folder) on_folder();
  }
}

}  // namespace

std::vector<std::string> find_links(int root_fd, std::vector<std::string> folders,
                                    const std::function<void()>& on_folder) {
  FolderQueue queue(std::move(folders));
  const unsigned count = std::clamp(std::thread::hardware_concurrency(), 2u, kThreadsMax);
  std::vector<std::vector<std::string>> found(count);
  {
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < count; ++i) {
      // Where no thread can be had, the calling thread reads alone.
      try {
        helpers.emplace_back([root_fd, &queue, &links = found[i]] { read_until_empty(root_fd, queue, links, {}); });
      } catch (const std::exception&) {
        break;
      }
    }
    read_until_empty(root_fd, queue, found[0], on_folder);
  }
  std::vector<std::string> links = std::move(found[0]);
  for (unsigned i = 1; i < count; ++i) links.insert(links.end(), found[i].begin(), found[i].end());
  std::sort(links.begin(), links.end());
  return links;
}

}  // namespace belljar
