#include "image/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "base/fd.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "image/gzip_stream.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

// Top-level folders of a root file system, which no saved image has.
constexpr std::string_view kSystemFolders[] = {"bin", "boot", "dev",  "etc", "home", "lib", "lib64", "media", "mnt",
                                               "opt", "proc", "root", "run", "sbin", "srv", "sys",   "usr",   "var"};

std::unexpected<Error> refuse(std::string_view why) {
  return fail(ErrorCode::bad_image, std::string(why));
}

std::string reader_error(archive* reader) {
  const char* const text = ::archive_error_string(reader);
  return one_line(text == nullptr ? "it can't be read" : text);
}

ArchivePtr new_reader() {
  ArchivePtr reader(::archive_read_new());
  if (reader == nullptr) std::abort();  // out of memory
  return reader;
}

void support_packing(archive* reader) {
  ::archive_read_support_filter_gzip(reader);
  ::archive_read_support_filter_zstd(reader);
  ::archive_read_support_filter_xz(reader);
}

// An archive_read_callback for an ArchiveFeed.
la_ssize_t read_feed(archive* reader, void* feed_pointer, const void** bytes) {
  auto* const feed = static_cast<ArchiveFeed*>(feed_pointer);
  const auto piece = feed->source();
  if (!piece) {
    feed->error = piece.error();
    ::archive_set_error(reader, EIO, "the stream ended");
    return -1;
  }
  *bytes = piece->data();
  return static_cast<la_ssize_t>(piece->size());
}

// The last "filter" is the plain stream itself.
bool is_packed_once_at_most(archive* reader) {
  return ::archive_filter_count(reader) <= 2;
}

constexpr std::string_view kPackedTwice = "a packed stream inside a packed stream is not taken; pack it once";

ByteSource begin_with(std::string begin, ByteSource rest) {
  return [begin = std::move(begin), rest = std::move(rest), is_begun = false]() mutable -> Result<std::string_view> {
    if (std::exchange(is_begun, true) || begin.empty()) return rest();
    return std::string_view(begin);
  };
}

// Reads the tar entries of an unpacked stream.
class TarEntries {
 public:
  explicit TarEntries(ByteSource source) : feed_{.source = std::move(source), .error = {}}, reader_(new_reader()) {}
  TarEntries(const TarEntries&) = delete;
  TarEntries& operator=(const TarEntries&) = delete;

  // The next entry; null at the end of the archive.
  Result<archive_entry*> next() {
    if (!is_open_) TRY_VOID(open());
    archive_entry* entry = nullptr;
    const int result = ::archive_read_next_header(reader_.get(), &entry);
    if (result == ARCHIVE_EOF) return nullptr;
    // A warning is about names that are not of the locale's character set: their bytes are there all the same.
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN) return entry;
    return error();
  }

  Result<std::optional<ContentBlock>> next_block() {
    const void* bytes = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int result = ::archive_read_data_block(reader_.get(), &bytes, &size, &offset);
    if (result == ARCHIVE_EOF) return std::nullopt;
    if (result != ARCHIVE_OK) return error();
    return ContentBlock{{static_cast<const char*>(bytes), size}, static_cast<std::uint64_t>(offset)};
  }

 private:
  Result<void> open() {
    is_open_ = true;
    ::archive_read_support_format_tar(reader_.get());
    if (::archive_read_open(reader_.get(), &feed_, nullptr, read_feed, nullptr) == ARCHIVE_OK) return {};
    return error();
  }

  std::unexpected<Error> error() {
    if (feed_.error) return std::unexpected(*feed_.error);
    return refuse(fmt::format("not a sound tar archive: {}", reader_error(reader_.get())));
  }

  ArchiveFeed feed_;
  ArchivePtr reader_;
  bool is_open_ = false;
};

std::string_view text_or_empty(const char* text) {
  return text == nullptr ? std::string_view() : text;
}

TreeEntry::Kind kind_of(archive_entry* entry) {
  if (::archive_entry_hardlink(entry) != nullptr) return TreeEntry::Kind::hard_link;
  switch (::archive_entry_filetype(entry)) {
    case AE_IFREG:
      return TreeEntry::Kind::file;
    case AE_IFDIR:
      return TreeEntry::Kind::folder;
    case AE_IFLNK:
      return TreeEntry::Kind::link;
    default:
      return TreeEntry::Kind::special;
  }
}

std::uint64_t id_of(la_int64_t id) {
  return id < 0 ? kImageIdMax + 1 : static_cast<std::uint64_t>(id);
}

Result<TreeEntry> to_tree_entry(archive_entry* entry, std::string path) {
  TreeEntry made;
  made.kind = kind_of(entry);
  made.path = std::move(path);
  made.mode = ::archive_entry_mode(entry) & 07777;
  made.uid = id_of(::archive_entry_uid(entry));
  made.gid = id_of(::archive_entry_gid(entry));
  made.modified = {.tv_sec = ::archive_entry_mtime(entry), .tv_nsec = ::archive_entry_mtime_nsec(entry)};
  if (made.kind == TreeEntry::Kind::link) made.target = text_or_empty(::archive_entry_symlink(entry));
  if (made.kind == TreeEntry::Kind::hard_link) {
    // The target is a name in the tree and never a whiteout.
    LayerName target = TRY(read_layer_name(text_or_empty(::archive_entry_hardlink(entry)), Whiteouts::literal));
    if (target.kind == LayerName::Kind::root) {
      return refuse(fmt::format("entry {}: a hard link to the root", quote(made.path)));
    }
    made.target = std::move(target.path);
  }
  if (made.kind == TreeEntry::Kind::file) {
    const la_int64_t size = ::archive_entry_size(entry);
    if (size < 0) return refuse(fmt::format("entry {}: a negative size", quote(made.path)));
    made.size = static_cast<std::uint64_t>(size);
  }
  return made;
}

Result<void> unpack_entry(TarEntries& entries, archive_entry* entry, Whiteouts whiteouts, TreeWriter& writer) {
  using Kind = LayerName::Kind;
  const char* const written = ::archive_entry_pathname(entry);
  if (written == nullptr) return refuse("an entry has no name that can be read");
  LayerName name = TRY(read_layer_name(written, whiteouts));
  switch (name.kind) {
    case Kind::ignored:
      return {};
    case Kind::whiteout:
      return writer.remove(name.path);
    case Kind::opaque:
      return writer.make_opaque(name.path);
    case Kind::root:
      if (kind_of(entry) == TreeEntry::Kind::folder) return {};
      return refuse(fmt::format("entry {}: the root can only be a folder", quote(written)));
    case Kind::entry:
      break;
  }
  if (::archive_entry_xattr_count(entry) > 0 || ::archive_entry_acl_types(entry) != 0) writer.count_attributes();
  return writer.add(TRY(to_tree_entry(entry, std::move(name.path))), [&entries] { return entries.next_block(); });
}

// The name of a member without what means nothing; empty for the archive's own folder.
std::string member_name(std::string_view written) {
  while (written.starts_with("./")) written.remove_prefix(2);
  while (written.ends_with('/')) written.remove_suffix(1);
  return written == "." ? "" : std::string(written);
}

bool is_of_a_system(std::string_view member) {
  return std::ranges::find(kSystemFolders, member.substr(0, member.find('/'))) != std::end(kSystemFolders);
}

Result<void> add_member(archive* reader, archive_entry* entry, ArchiveListing& listing, std::set<std::string>& seen) {
  const char* const written = ::archive_entry_pathname(entry);
  if (written == nullptr) return refuse("an entry has no name that can be read");
  ArchiveMember member;
  member.name = member_name(written);
  const TreeEntry::Kind kind = kind_of(entry);
  if (member.name.empty() || kind == TreeEntry::Kind::folder) return {};
  if (!seen.insert(member.name).second) {
    return refuse(fmt::format("the archive has {} twice, so that it can be read in two ways", quote(member.name)));
  }
  if (kind == TreeEntry::Kind::link) member.link = text_or_empty(::archive_entry_symlink(entry));
  if (kind == TreeEntry::Kind::hard_link) {
    member.link = '/' + member_name(text_or_empty(::archive_entry_hardlink(entry)));
  }
  member.offset = static_cast<std::uint64_t>(::archive_filter_bytes(reader, 0));
  member.size = static_cast<std::uint64_t>(std::max<la_int64_t>(::archive_entry_size(entry), 0));
  listing.members.push_back(std::move(member));
  return {};
}

// Whether form_of() looks at the name.
bool tells_form(std::string_view member) {
  return member == "oci-layout" || member == "index.json" || member == "manifest.json" ||
         member.starts_with("blobs/sha256/");
}

// An image's archive that was cut off must not be taken for a root file system.
Result<ArchiveForm> form_of(const std::set<std::string>& names) {
  if (names.contains("oci-layout") && names.contains("index.json")) return ArchiveForm::oci;
  const auto blob = names.lower_bound("blobs/sha256/");
  const bool has_blobs = blob != names.end() && blob->starts_with("blobs/sha256/");
  if ((names.contains("oci-layout") || has_blobs) && !names.contains("manifest.json")) {
    return refuse("the archive of an image that lacks its oci-layout or index.json; it may be cut off");
  }
  return names.contains("manifest.json") ? ArchiveForm::docker : ArchiveForm::rootfs;
}

}  // namespace

void ArchiveCloser::operator()(archive* reader) const {
  ::archive_read_free(reader);
}

ByteSource read_from(int fd) {
  return [fd, buffer = std::make_shared<std::string>(kReadBytes, '\0')]() -> Result<std::string_view> {
    while (true) {
      const ssize_t count = ::read(fd, buffer->data(), buffer->size());
      if (count >= 0) return std::string_view(buffer->data(), static_cast<std::size_t>(count));
      if (errno != EINTR) return refuse(fmt::format("can't be read: {}", errno_text(errno)));
    }
  };
}

UnpackedStream::UnpackedStream(ByteSource source) : feed_{.source = std::move(source), .error = {}} {}

// Looks at how the stream begins, to have gzip unpacked by what checks it.
Result<void> UnpackedStream::look_for_gzip() {
  std::string begin;
  while (begin.size() < 2) {
    const std::string_view piece = TRY(feed_.source());
    if (piece.empty()) break;
    begin += piece;
  }
  is_gzip_ = is_gzip(begin);
  feed_.source = begin_with(std::move(begin), std::move(feed_.source));
  if (is_gzip_) {
    feed_.source = [gzip = std::make_shared<GzipStream>(std::move(feed_.source))] { return gzip->next(); };
  }
  return {};
}

Result<void> UnpackedStream::open() {
  TRY_VOID(look_for_gzip());
  reader_ = new_reader();
  support_packing(reader_.get());
  ::archive_read_support_format_raw(reader_.get());
  ::archive_read_support_format_empty(reader_.get());
  archive_entry* entry = nullptr;
  int result = ::archive_read_open(reader_.get(), &feed_, nullptr, read_feed, nullptr);
  if (result == ARCHIVE_OK) result = ::archive_read_next_header(reader_.get(), &entry);
  if (feed_.error) return std::unexpected(*feed_.error);
  if (result == ARCHIVE_EOF) return refuse("it is empty");
  if (result < ARCHIVE_WARN) return refuse(fmt::format("can't be unpacked: {}", reader_error(reader_.get())));
  const bool is_packed = ::archive_filter_count(reader_.get()) > 1;
  if (!is_packed_once_at_most(reader_.get()) || (is_gzip_ && is_packed)) return refuse(kPackedTwice);
  is_packed_ = is_gzip_ || is_packed;
  return {};
}

Result<std::string_view> UnpackedStream::next() {
  if (reader_ == nullptr) TRY_VOID(open());
  const void* bytes = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  while (true) {
    const int result = ::archive_read_data_block(reader_.get(), &bytes, &size, &offset);
    if (result == ARCHIVE_EOF) return std::string_view();
    if (feed_.error) return std::unexpected(*feed_.error);
    if (result != ARCHIVE_OK) return refuse(fmt::format("can't be unpacked: {}", reader_error(reader_.get())));
    if (size > 0) return std::string_view(static_cast<const char*>(bytes), size);
  }
}

namespace {

// How many zeros end what was seen of a stream. A tar archive ends in blocks of them; libarchive does not ask for any.
class EndOfStream {
 public:
  void see(std::string_view piece) {
    const std::size_t last = piece.find_last_not_of('\0');
    zeros_ = last == std::string_view::npos ? zeros_ + piece.size() : piece.size() - last - 1;
  }
  bool has_end_mark() const { return zeros_ >= kTarBlockBytes; }

 private:
  static constexpr std::uint64_t kTarBlockBytes = 512;
  std::uint64_t zeros_ = 0;
};

}  // namespace

Result<std::string> unpack_layer(const ByteSource& source, Whiteouts whiteouts, TreeWriter& writer) {
  UnpackedStream stream(source);
  Sha256 hash;
  EndOfStream end;
  const auto hashed = [&]() -> Result<std::string_view> {
    const std::string_view piece = TRY(stream.next());
    if (stream.is_packed()) hash.update(piece);
    end.see(piece);
    return piece;
  };
  TarEntries entries(hashed);
  while (archive_entry* const entry = TRY(entries.next())) {
    TRY_VOID(unpack_entry(entries, entry, whiteouts, writer));
  }
  TRY_VOID(writer.finish());
  while (!TRY(hashed()).empty()) {
  }
  // A layer has a digest to tell.
  if (whiteouts == Whiteouts::literal && !end.has_end_mark())
    return refuse("the archive has no end mark: it is cut off");
  while (!TRY(source()).empty()) {  // what may come after the end of a packed stream
  }
  return stream.is_packed() ? hash.finish() : "";
}

Result<ArchiveListing> list_archive(int fd) {
  const ArchivePtr reader = new_reader();
  support_packing(reader.get());
  ::archive_read_support_format_tar(reader.get());
  if (::archive_read_open_fd(reader.get(), fd, kReadBytes) != ARCHIVE_OK) return refuse(reader_error(reader.get()));
  ArchiveListing listing;
  std::set<std::string> seen;
  bool has_more = false;  // than are listed
  while (true) {
    archive_entry* entry = nullptr;
    const int result = ::archive_read_next_header(reader.get(), &entry);
    if (result == ARCHIVE_EOF) break;
    if (result < ARCHIVE_WARN) {
      return refuse(
          fmt::format("not a tar archive, plain or packed by gzip, zstd or xz: {}", reader_error(reader.get())));
    }
    if (!is_packed_once_at_most(reader.get())) return refuse(kPackedTwice);
    listing.is_packed = ::archive_filter_count(reader.get()) > 1;
    std::string name = member_name(text_or_empty(::archive_entry_pathname(entry)));
    if (is_of_a_system(name)) return listing;
    if (listing.members.size() < kArchiveMembersMax) {
      TRY_VOID(add_member(reader.get(), entry, listing, seen));
    } else {
      has_more = true;
      if (tells_form(name) && seen.size() < 2 * kArchiveMembersMax) seen.insert(std::move(name));
    }
  }
  if (seen.empty()) return refuse("the archive is empty");
  listing.form = TRY(form_of(seen));
  if (has_more && listing.form != ArchiveForm::rootfs) {
    return refuse(fmt::format("the archive of an image has more than {} members", kArchiveMembersMax));
  }
  return listing;
}

Result<void> expand_archive(int from_fd, int to_fd, std::uint64_t bytes_max) {
  UnpackedStream stream(read_from(from_fd));
  std::uint64_t written = 0;
  while (true) {
    const std::string_view piece = TRY(stream.next());
    if (piece.empty()) return {};
    written += piece.size();
    if (written > bytes_max) {
      return refuse(
          fmt::format("larger than {} MiB unpacked; belljar image load --max-size allows more", bytes_max >> 20));
    }
    const auto done = write_all(to_fd, piece);
    if (!done) {
      return fail(ErrorCode::no_resources,
                  fmt::format("no room for the unpacked archive: {}", errno_text(done.error().value)));
    }
  }
}

}  // namespace belljar
