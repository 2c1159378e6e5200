// Writes the entries of layers into a folder, one layer over the other.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace belljar {

// One entry. Paths are as read_layer_name() gives them: relative, normal, not empty.
struct TreeEntry {
  enum class Kind {
    folder,
    file,
    link,
    hard_link,
    special,  // a device, FIFO or socket: not made, and what was in its place is removed
  };
  Kind kind = Kind::file;
  std::string path;
  mode_t mode = 0;  // permissions; setuid and setgid are never set
  std::uint64_t uid = 0;
  std::uint64_t gid = 0;
  timespec modified{};
  std::string target;      // of a link: its text; of a hard link: the path of the file
  std::uint64_t size = 0;  // of a file
};

struct ContentBlock {
  std::string_view bytes;
  std::uint64_t offset;
};

// The next piece of a file, by rising offsets; what lies between pieces is a hole. Nothing at the end.
using ContentReader = std::function<Result<std::optional<ContentBlock>>()>;

struct TreeLimits {
  std::uint64_t entries_max;
  std::uint64_t bytes_max;  // of all files together, holes counted
};

// What was written so far, and what was left out of it.
struct TreeCounts {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t special_files = 0;  // devices, FIFOs and sockets
  std::uint64_t set_id_bits = 0;    // files and folders that lost setuid or setgid
  std::uint64_t attributes = 0;     // entries that lost extended attributes, file capabilities among them
  std::uint64_t foreign_ids = 0;    // entries whose user or group is beyond kImageIdMax

  bool operator==(const TreeCounts&) const = default;
};

inline constexpr std::uint64_t kImageIdMax = 65535;
inline constexpr unsigned kNobody = 65534;

enum class Ownership {
  image,   // files get the image's user and group ids; needs CAP_CHOWN. Ids beyond kImageIdMax become kNobody.
  caller,  // files belong to the calling process
};

enum class LayerPlace { first, upper };

// Every path is resolved beneath the folder and through no link (openat2(2)): an entry that would go through one is an
// error, and one that takes a link's place removes the link. Nothing that was there before is written to or changes its
// owner, mode or times, but folders whose entry comes again. Not for several threads; nobody else may change the
// folder.
class TreeWriter {
 public:
  // `root_fd` stays the caller's. `counts` is where the layers below ended.
  TreeWriter(int root_fd, Ownership ownership, const TreeLimits& limits, LayerPlace place, const TreeCounts& counts);

  // Adds an entry; `next_block` is asked for the content of a file. Errors: bad_image, with the name of the entry;
  // no_resources where the disk is full.
  Result<void> add(const TreeEntry& entry, const ContentReader& next_block);

  // Removes what the layers below have at `path`, or, for make_opaque(), below it. What this layer has written stays,
  // whether it came before or comes after. Missing paths are no error.
  Result<void> remove(const std::string& path);
  Result<void> make_opaque(const std::string& path);

  // Sets the times of folders. Call once, after the last entry.
  Result<void> finish();

  void count_attributes() { ++counts_.attributes; }
  const TreeCounts& counts() const { return counts_; }

 private:
  Result<void> count(const TreeEntry& entry);
  Result<Fd> open_parent(const std::string& path);
  Result<int> parent_of(const std::string& path);
  Result<void> make_room(int parent_fd, const TreeEntry& entry);
  Result<void> set_owner(int fd, const TreeEntry& entry) const;
  Result<void> add_folder(int parent_fd, const TreeEntry& entry);
  Result<void> add_file(int parent_fd, const TreeEntry& entry, const ContentReader& next_block);
  Result<void> write_content(int fd, const TreeEntry& entry, const ContentReader& next_block);
  Result<void> add_link(int parent_fd, const TreeEntry& entry);
  Result<void> add_hard_link(int parent_fd, const TreeEntry& entry);
  Result<void> remove_lower(int parent_fd, const std::string& path);
  Result<void> empty_lower(int folder_fd, const std::string& path);
  void remember(const std::string& path);
  void forget_parent() { parent_ = Fd(); }

  int root_fd_;
  Ownership ownership_;
  TreeLimits limits_;
  LayerPlace place_;
  TreeCounts counts_;
  Fd parent_;  // the folder of the last entry
  std::string parent_path_;
  std::unordered_set<std::string> written_;  // by this layer, with the folders above
  std::vector<std::pair<std::string, timespec>> folder_times_;
};

}  // namespace belljar
