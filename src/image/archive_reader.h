// Tar archives and packed streams, as libarchive reads them. What is read is hostile: call these in a confined process
// (confined.h) only, or in tests.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/layer_name.h"
#include "image/tree_writer.h"

struct archive;

namespace belljar {

// Gives the next piece of a stream, valid until the next call; empty at the end.
using ByteSource = std::function<Result<std::string_view>()>;

// Reads pieces of at most 256 KiB from a descriptor.
ByteSource read_from(int fd);

// A source that libarchive reads from, and the error with which it ended.
struct ArchiveFeed {
  ByteSource source;
  std::optional<Error> error;
};

struct ArchiveCloser {
  void operator()(archive* reader) const;
};
using ArchivePtr = std::unique_ptr<archive, ArchiveCloser>;

// A stream as it is, or unpacked where it is packed by gzip, zstd or xz (once: no packed stream in another). Whatever
// checksums the packing has are checked.
class UnpackedStream {
 public:
  explicit UnpackedStream(ByteSource source);
  UnpackedStream(const UnpackedStream&) = delete;
  UnpackedStream& operator=(const UnpackedStream&) = delete;

  // The next piece, valid until the next call; empty at the end. Errors: bad_image.
  Result<std::string_view> next();

  // Whether next() gives anything but the bytes of the source; true before the first call of it.
  bool is_packed() const { return is_packed_; }

 private:
  Result<void> open();
  Result<void> look_for_gzip();

  ArchiveFeed feed_;
  ArchivePtr reader_;
  bool is_gzip_ = false;
  bool is_packed_ = true;
};

// Reads a layer (or, with Whiteouts::literal, a root file system) as a tar stream, packed or not, and has `writer` make
// what it holds. Reads the stream to its end, whatever the archive says. Returns the SHA-256 of the unpacked stream
// where it was packed; nothing where it was not, since whoever feeds the stream has that of its bytes. Errors:
// bad_image, no_resources.
Result<std::string> unpack_layer(const ByteSource& source, Whiteouts whiteouts, TreeWriter& writer);

// One member of an archive in which an image was saved.
struct ArchiveMember {
  std::string name;          // without "./" before it
  std::uint64_t offset = 0;  // of its content, in the unpacked stream
  std::uint64_t size = 0;
  std::string link;  // the text of a symbolic link, or "/" and the name of the member that it is a hard link to

  bool operator==(const ArchiveMember&) const = default;
};

enum class ArchiveForm {
  rootfs,  // a root file system; the list of members is not complete
  oci,
  docker,
};

struct ArchiveListing {
  ArchiveForm form = ArchiveForm::rootfs;
  bool is_packed = false;
  std::vector<ArchiveMember> members;
};

inline constexpr std::size_t kArchiveMembersMax = 10000;

// Says what the archive in `fd` holds. Contents are passed over without being read where the archive is not packed.
Result<ArchiveListing> list_archive(int fd);

// Writes the unpacked form of what is in `from_fd` to `to_fd`, at most `bytes_max` of it.
Result<void> expand_archive(int from_fd, int to_fd, std::uint64_t bytes_max);

}  // namespace belljar
