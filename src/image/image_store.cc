#include "image/image_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/utf8.h"
#include "host/privilege.h"
#include "image/cache_folder.h"
#include "image/json_reading.h"
#include "spec/checks.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kNamesShown = 20;
constexpr std::size_t kCountsBytesMax = 65536;
constexpr std::string_view kNames = "names";
constexpr std::string_view kPaths = "paths";
constexpr std::string_view kTrees = "trees";
constexpr std::string_view kBuilding = "building";
constexpr const char* kNewTree = "building/new";
constexpr const char* kNewRecord = "building/record";

std::unexpected<Error> no_room(std::string_view what, int error) {
  return fail(ErrorCode::no_resources, fmt::format("the image store: {}: {}", what, errno_text(error)));
}

std::string joined(std::string_view folder, std::string_view name) {
  return fmt::format("{}/{}", folder, name);
}

const char* variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  return value != nullptr && value[0] == '/' ? value : nullptr;
}

bool flush_folder(int folder_fd, const char* path) {
  const auto folder = open_at(folder_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return folder && ::fsync(folder->get()) == 0;
}

bool take_lock(int fd, int operation) {
  while (::flock(fd, operation) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

SourceIdentity identity_of(const struct stat& status) {
  return {.key = fmt::format("{:x}-{:x}", status.st_dev, status.st_ino),
          .state = fmt::format("{} {}.{} {}.{}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                               status.st_ctim.tv_sec, status.st_ctim.tv_nsec)};
}

}  // namespace

Result<std::string> image_store_folder() {
  if (const char* const named = std::getenv("BELLJAR_IMAGES")) {  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
    if (named[0] == '/') return std::string(named);
    return fail(ErrorCode::host_unsupported, "BELLJAR_IMAGES must be an absolute path of a folder");
  }
  if (host::is_root_of_host()) return "/var/lib/belljar/images";
  if (const char* const data = variable("XDG_DATA_HOME")) return joined(data, "belljar/images");
  if (const char* const home = variable("HOME")) return joined(home, ".local/share/belljar/images");
  return fail(ErrorCode::host_unsupported, "no place for images: set HOME or BELLJAR_IMAGES to an absolute path");
}

Result<SourceIdentity> source_identity(const std::string& path) {
  const auto refuse = [&path](std::string_view why) {
    return fail(ErrorCode::bad_image, fmt::format("--image {}: {}", one_line(path), why));
  };
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return refuse(errno_text(errno));
  if (S_ISREG(status.st_mode)) return identity_of(status);
  if (!S_ISDIR(status.st_mode)) return refuse("this is neither a file nor a folder");
  if (::access(joined(path, "oci-layout").c_str(), F_OK) != 0 ||
      ::stat(joined(path, "index.json").c_str(), &status) != 0) {
    return refuse("a folder that is no OCI layout must be loaded first: belljar image load NAME FOLDER");
  }
  return identity_of(status);
}

Result<ImageStore> ImageStore::open(MissingStore missing) {
  return open(TRY(image_store_folder()), missing);
}

Result<ImageStore> ImageStore::open(const std::string& path, MissingStore missing) {
  if (missing == MissingStore::is_empty && ::access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    return ImageStore(path, Fd());
  }
  Fd folder = TRY(open_private_folder(
      path, {.what = "the image store", .remedy = "set BELLJAR_IMAGES to a folder that you can write", .mode = 0700}));
  ImageStore store(path, std::move(folder));
  TRY_VOID(store.make_folders());
  return store;
}

Result<void> ImageStore::make_folders() {
  for (const std::string_view name : {kNames, kPaths, kTrees, kBuilding}) {
    if (::mkdirat(folder_.get(), name.data(), 0700) != 0 && errno != EEXIST) return no_room(name, errno);
  }
  return {};
}

Result<Fd> ImageStore::lock_file(const char* name) const {
  auto file = open_at(folder_.get(), name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!file) return no_room(name, file.error().value);
  if (!take_lock(file->get(), LOCK_EX)) return no_room(name, errno);
  return std::move(*file);
}

Result<Fd> ImageStore::lock() const {
  return lock_file("lock");
}

Result<Fd> ImageStore::lock_loading() {
  Fd lock = TRY(lock_file("load.lock"));
  clear_building();
  return lock;
}

void ImageStore::clear_building() {
  for (const std::string& name : names_in(kBuilding.data())) {
    remove_tree(folder_.get(), joined(kBuilding, name).c_str());
  }
}

Result<std::string> ImageStore::make_building_folder() {
  for (const char* const path : {kNewTree, "building/new/root"}) {
    if (::mkdirat(folder_.get(), path, 0755) != 0) return no_room(path, errno);
    if (::fchmodat(folder_.get(), path, 0755, 0) != 0) return no_room(path, errno);
  }
  return joined(path_, kNewTree);
}

std::string ImageStore::tree_path(std::string_view tree) const {
  return fmt::format("{}/{}/{}/root", path_, kTrees, tree);
}

bool ImageStore::has_tree(std::string_view tree) const {
  return ::faccessat(folder_.get(), joined(kTrees, tree).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<TreeCounts> ImageStore::tree_counts(std::string_view tree) const {
  const std::string file = fmt::format("{}/{}/counts.json", kTrees, tree);
  const auto text = read_file_at(folder_.get(), file.c_str(), kCountsBytesMax);
  if (!text) return fail(ErrorCode::bad_image, fmt::format("{}: {}", file, errno_text(text.error().value)));
  return read_counts(TRY(read_json_object(*text, file, JsonBounds{})));
}

Result<void> ImageStore::publish_tree(std::string_view tree, const TreeCounts& counts) {
  {
    const auto folder = open_at(folder_.get(), kNewTree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!folder) return no_room(kNewTree, folder.error().value);
    const auto file = open_at(folder->get(), "counts.json", O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!file) return no_room("counts.json", file.error().value);
    const auto written = write_all(file->get(), dump_json({{"counts", counts_to_json(counts)}}));
    if (!written) return no_room("counts.json", written.error().value);
    if (::syncfs(folder->get()) != 0) return no_room(kNewTree, errno);
  }
  if (::renameat(folder_.get(), kNewTree, folder_.get(), joined(kTrees, tree).c_str()) != 0) {
    return has_tree(tree) ? Result<void>() : no_room(kTrees, errno);
  }
  if (!flush_folder(folder_.get(), kTrees.data())) return no_room(kTrees, errno);
  return {};
}

Result<void> ImageStore::write_record(const std::string& file, const ImageRecord& record) {
  {
    const auto fd = open_at(folder_.get(), kNewRecord, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (!fd) return no_room(kNewRecord, fd.error().value);
    if (const auto written = write_all(fd->get(), record_to_json(record)); !written) {
      return no_room(kNewRecord, written.error().value);
    }
    if (::fsync(fd->get()) != 0) return no_room(kNewRecord, errno);
  }
  if (::renameat(folder_.get(), kNewRecord, folder_.get(), file.c_str()) != 0) return no_room(file, errno);
  if (!flush_folder(folder_.get(), file.substr(0, file.find('/')).c_str())) return no_room(file, errno);
  return {};
}

Result<void> ImageStore::write_name(std::string_view name, const ImageRecord& record) {
  const std::string file = joined(kNames, name);
  const auto before = read_record(file);
  TRY_VOID(write_record(file, record));
  if (!before || before->tree == record.tree || count_references(before->tree) > 0) return {};
  auto claim = claim_tree(before->tree);
  return claim ? drop_tree(before->tree, std::move(*claim)) : Result<void>();  // in use: left to collect_garbage()
}

Result<void> ImageStore::write_path(const SourceIdentity& identity, const ImageRecord& record) {
  return write_record(joined(kPaths, identity.key), record);
}

std::optional<ImageRecord> ImageStore::find_path(const SourceIdentity& identity) const {
  auto record = read_record(joined(kPaths, identity.key));
  if (!record || record->identity != identity.state || !has_tree(record->tree)) return std::nullopt;
  return std::move(*record);
}

Result<ImageRecord> ImageStore::read_record(const std::string& file) const {
  const auto opened = open_at(folder_.get(), file.c_str(), O_RDONLY | O_NOFOLLOW);
  if (!opened) return fail(ErrorCode::unknown_image, fmt::format("{}: {}", file, errno_text(opened.error().value)));
  const auto text = read_all(opened->get(), kRecordBytesMax);
  if (!text) return fail(ErrorCode::bad_image, fmt::format("{}: {}", file, errno_text(text.error().value)));
  return record_from_json(*text);
}

std::unexpected<Error> ImageStore::unknown(std::string_view name) const {
  std::string known;
  std::vector<std::string> names = names_in(kNames.data());
  std::ranges::sort(names);
  for (const std::string& each : names) {
    if (&each - names.data() == kNamesShown) {
      known += " ...";
      break;
    }
    known += known.empty() ? each : ", " + each;
  }
  return fail(ErrorCode::unknown_image,
              known.empty()
                  ? fmt::format("no image {}; none is loaded yet: belljar image load NAME SOURCE", quote(name))
                  : fmt::format("no image {}; there are: {}", quote(name), known));
}

Result<LoadedImage> ImageStore::open_record(const std::string& file) const {
  LoadedImage image{.record = TRY(read_record(file)), .root = {}, .root_path = {}, .lock = {}};
  const std::string tree = joined(kTrees, image.record.tree);
  const auto damaged = [&](std::string_view why) {
    return fail(ErrorCode::bad_image, fmt::format("the image of {}/{} {}; load it again", path_, file, why));
  };
  auto folder = open_at(folder_.get(), tree.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return damaged("is gone");
  struct stat held{};
  struct stat named{};
  if (!take_lock(folder->get(), LOCK_SH) || ::fstat(folder->get(), &held) != 0 ||
      ::fstatat(folder_.get(), tree.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 || named.st_ino != held.st_ino) {
    return damaged("was removed meanwhile");
  }
  auto root = open_at(folder->get(), "root", O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!root) return damaged("is incomplete");
  image.root = std::move(*root);
  image.root_path = tree_path(image.record.tree);
  image.lock = std::move(*folder);
  return image;
}

Result<LoadedImage> ImageStore::open_image(const std::string& reference) const {
  if (is_image_path(reference)) {
    const SourceIdentity identity = TRY(source_identity(reference));
    if (folder_.is_open() && find_path(identity)) return open_record(joined(kPaths, identity.key));
    return fail(ErrorCode::unknown_image, fmt::format("the image {} is not loaded", quote(reference)));
  }
  if (!folder_.is_open() || !is_image_name(reference)) return unknown(reference);
  auto image = open_record(joined(kNames, reference));
  if (!image && image.error().code == ErrorCode::unknown_image) return unknown(reference);
  return image;
}

std::vector<std::string> ImageStore::names_in(const char* folder) const {
  std::vector<std::string> names;
  if (!folder_.is_open()) return names;
  auto opened = open_at(folder_.get(), folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!opened) return names;
  DIR* const stream = ::fdopendir(opened->get());
  if (stream == nullptr) return names;
  (void)opened->release();
  while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(stream);
  return names;
}

std::vector<ListedImage> ImageStore::list() const {
  std::vector<ListedImage> images;
  std::vector<std::string> names = names_in(kNames.data());
  std::ranges::sort(names);
  for (std::string& name : names) {
    auto record = read_record(joined(kNames, name));
    if (!record) continue;
    const auto tree = open_at(folder_.get(), joined(kTrees, record->tree).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const bool is_in_use = tree && ::flock(tree->get(), LOCK_EX | LOCK_NB) != 0;
    images.push_back({.name = std::move(name), .record = std::move(*record), .is_in_use = is_in_use});
  }
  return images;
}

std::size_t ImageStore::count_references(std::string_view tree) const {
  std::size_t count = 0;
  for (const std::string_view folder : {kNames, kPaths}) {
    for (const std::string& name : names_in(folder.data())) {
      const auto record = read_record(joined(folder, name));
      if (record && record->tree == tree) ++count;
    }
  }
  return count;
}

// Takes the lock that no sandbox can hold beside; not open where there is no such tree.
Result<Fd> ImageStore::claim_tree(const std::string& tree) {
  auto folder = open_at(folder_.get(), joined(kTrees, tree).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return Fd();
  if (::flock(folder->get(), LOCK_EX | LOCK_NB) == 0) return std::move(*folder);
  return fail(ErrorCode::image_in_use, "a running sandbox uses the image; wait for it to end, or end it");
}

Result<void> ImageStore::drop_tree(const std::string& tree, Fd claim) {
  if (!claim.is_open()) return {};
  const std::string away = joined(kBuilding, "gone-" + tree);
  if (::renameat(folder_.get(), joined(kTrees, tree).c_str(), folder_.get(), away.c_str()) != 0) {
    return no_room(kTrees, errno);
  }
  claim.reset();  // who waits for it sees now that the tree is gone
  remove_tree(folder_.get(), away.c_str());
  return {};
}

Result<void> ImageStore::remove(std::string_view name) {
  if (!folder_.is_open() || !is_image_name(name)) return unknown(name);
  const Fd held = TRY(lock());
  const std::string file = joined(kNames, name);
  const auto record = read_record(file);
  if (!record && record.error().code == ErrorCode::unknown_image) return unknown(name);
  const bool is_last = record && count_references(record->tree) == 1;
  Fd claim;
  if (is_last) claim = TRY(claim_tree(record->tree));
  if (::unlinkat(folder_.get(), file.c_str(), 0) != 0) return no_room(file, errno);
  return is_last ? drop_tree(record->tree, std::move(claim)) : Result<void>();
}

Result<std::uint64_t> ImageStore::collect_garbage() {
  if (!folder_.is_open()) return 0;
  std::uint64_t removed = names_in(kBuilding.data()).size();
  const Fd loading = TRY(lock_loading());
  const Fd held = TRY(lock());
  for (const std::string& name : names_in(kPaths.data())) {
    const std::string file = joined(kPaths, name);
    const auto record = read_record(file);
    const auto identity = record ? source_identity(record->source) : std::unexpected(record.error());
    if (identity && find_path(*identity)) continue;
    if (::unlinkat(folder_.get(), file.c_str(), 0) == 0) ++removed;
  }
  for (const std::string& tree : names_in(kTrees.data())) {
    if (count_references(tree) > 0) continue;
    auto claim = claim_tree(tree);
    if (claim && drop_tree(tree, std::move(*claim))) ++removed;
  }
  return removed;
}

}  // namespace belljar
