#include "image/folder_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <vector>

#include "base/fd.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "host/open_path.h"
#include "image/layer_name.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

std::unexpected<Error> failed(std::string_view path, int error) {
  return fail(ErrorCode::bad_image, fmt::format("{}: {}", quote(path), errno_text(error)));
}

class FolderReader {
 public:
  explicit FolderReader(TreeWriter& writer) : writer_(writer), buffer_(kReadBytes, '\0') {}

  Result<void> copy_entries(int folder_fd, const std::string& path) {
    std::vector<std::string> names = TRY(sorted_names(folder_fd, path));
    for (const std::string& name : names) {
      TRY_VOID(copy_entry(folder_fd, name, path.empty() ? name : path + '/' + name));
    }
    return {};
  }

  std::string finish() { return hash_.finish(); }

 private:
  static Result<std::vector<std::string>> sorted_names(int folder_fd, const std::string& path) {
    auto copy = open_at(folder_fd, ".", O_RDONLY | O_DIRECTORY);
    if (!copy) return failed(path, copy.error().value);
    DIR* const stream = ::fdopendir(copy->get());
    if (stream == nullptr) return failed(path, errno);
    (void)copy->release();
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
        names.emplace_back(entry->d_name);
      }
    }
    ::closedir(stream);
    std::ranges::sort(names);
    return names;
  }

  Result<void> copy_entry(int folder_fd, const std::string& name, const std::string& path) {
    TRY(read_layer_name(path, Whiteouts::literal));  // not too deep, and not too long
    struct stat status{};
    if (::fstatat(folder_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return failed(path, errno);
    TreeEntry entry;
    entry.path = path;
    if (is_mounted(folder_fd, name)) return add_place_of_mount(status, entry);
    entry.mode = status.st_mode & 07777;
    entry.uid = status.st_uid;
    entry.gid = status.st_gid;
    entry.modified = status.st_mtim;
    if (S_ISDIR(status.st_mode)) return copy_folder_entry(folder_fd, name, entry);
    if (S_ISREG(status.st_mode)) return copy_file(folder_fd, name, status, entry);
    if (S_ISLNK(status.st_mode)) return copy_link(folder_fd, name, entry);
    entry.kind = TreeEntry::Kind::special;
    return add(entry, "");
  }

  static bool is_mounted(int folder_fd, const std::string& name) {
    const auto opened = host::open_on_same_mount(folder_fd, name.c_str(), O_PATH | O_NOFOLLOW);
    return !opened && opened.error().value == EXDEV;
  }

  // What is mounted below the folder is none of it, and what it covers can't be seen.
  Result<void> add_place_of_mount(const struct stat& status, TreeEntry& entry) {
    const bool is_folder = S_ISDIR(status.st_mode);
    entry.kind = is_folder ? TreeEntry::Kind::folder : TreeEntry::Kind::file;
    entry.mode = is_folder ? 0755 : 0644;
    return add(entry, "");
  }

  Result<void> copy_folder_entry(int folder_fd, const std::string& name, TreeEntry& entry) {
    entry.kind = TreeEntry::Kind::folder;
    TRY_VOID(add(entry, ""));
    const auto folder = open_at(folder_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!folder) return failed(entry.path, folder.error().value);
    return copy_entries(folder->get(), entry.path);
  }

  Result<void> copy_link(int folder_fd, const std::string& name, TreeEntry& entry) {
    entry.kind = TreeEntry::Kind::link;
    std::array<char, PATH_MAX> text{};
    const ssize_t length = ::readlinkat(folder_fd, name.c_str(), text.data(), text.size());
    if (length < 0) return failed(entry.path, errno);
    entry.target.assign(text.data(), static_cast<std::size_t>(length));
    return add(entry, "");
  }

  Result<void> copy_file(int folder_fd, const std::string& name, const struct stat& seen, TreeEntry& entry) {
    if (seen.st_nlink > 1) {
      const auto [first, is_new] = linked_.emplace(std::pair(seen.st_dev, seen.st_ino), entry.path);
      if (!is_new) {
        entry.kind = TreeEntry::Kind::hard_link;
        entry.target = first->second;
        return add(entry, "");
      }
    }
    const auto file = open_at(folder_fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat status{};
    if (!file || ::fstat(file->get(), &status) != 0) return failed(entry.path, file ? errno : file.error().value);
    entry.kind = TreeEntry::Kind::file;
    entry.size = static_cast<std::uint64_t>(status.st_size);
    Sha256 content;
    std::uint64_t offset = 0;
    const auto next_block = [&]() -> Result<std::optional<ContentBlock>> {
      if (offset == entry.size) return std::nullopt;
      const ssize_t count =
          ::read(file->get(), buffer_.data(), std::min<std::uint64_t>(buffer_.size(), entry.size - offset));
      if (count < 0) return failed(entry.path, errno);
      if (count == 0) return fail(ErrorCode::bad_image, fmt::format("{} changed while it was read", quote(entry.path)));
      const ContentBlock block{{buffer_.data(), static_cast<std::size_t>(count)}, offset};
      content.update(block.bytes);
      offset += block.bytes.size();
      return block;
    };
    TRY_VOID(writer_.add(entry, next_block));
    note(entry, content.finish());
    return {};
  }

  Result<void> add(const TreeEntry& entry, std::string_view content) {
    TRY_VOID(writer_.add(entry, [] { return Result<std::optional<ContentBlock>>(std::nullopt); }));
    note(entry, content);
    return {};
  }

  void note(const TreeEntry& entry, std::string_view content) {
    hash_.update(fmt::format("{} {} {} {} {} {}.{} {}", static_cast<int>(entry.kind), entry.mode, entry.uid, entry.gid,
                             entry.size, entry.modified.tv_sec, entry.modified.tv_nsec, content));
    for (const std::string& text : {entry.path, entry.target}) hash_.update({text.c_str(), text.size() + 1});
  }

  TreeWriter& writer_;
  std::string buffer_;
  Sha256 hash_;
  std::map<std::pair<dev_t, ino_t>, std::string> linked_;
};

}  // namespace

Result<std::string> copy_folder(int folder_fd, TreeWriter& writer) {
  FolderReader reader(writer);
  TRY_VOID(reader.copy_entries(folder_fd, ""));
  TRY_VOID(writer.finish());
  return reader.finish();
}

}  // namespace belljar
