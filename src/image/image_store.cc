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
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/utf8.h"
#include "host/privilege.h"
#include "image/cache_folder.h"
#include "image/image_manifest.h"
#include "image/json_reading.h"
#include "spec/checks.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kNamesShown = 20;
constexpr std::size_t kFactsBytesMax = 65536;
constexpr const char* kFacts = "facts.json";
constexpr std::string_view kNames = "names";
constexpr std::string_view kPaths = "paths";
constexpr std::string_view kTrees = "trees";
constexpr std::string_view kBuilding = "building";
constexpr const char* kNewTree = "building/new";
constexpr const char* kNewRecord = "building/record";

std::unexpected<Error> no_room(std::string_view what, int error) {
  return fail(ErrorCode::no_resources, fmt::format("the image store: {}: {}", what, errno_text(error)));
}

std::unexpected<Error> in_use() {
  return fail(ErrorCode::image_in_use, "a running sandbox uses the image; wait for it to end, or end it");
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

std::uint64_t ImageStore::clear_building() {
  const std::vector<std::string> names = names_in(kBuilding.data());
  for (const std::string& name : names) remove_tree(folder_.get(), joined(kBuilding, name).c_str());
  return names.size();
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

Result<TreeFacts> ImageStore::tree_facts(std::string_view tree) const {
  const std::string file = fmt::format("{}/{}/{}", kTrees, tree, kFacts);
  const auto text = read_file_at(folder_.get(), file.c_str(), kFactsBytesMax);
  if (!text) return fail(ErrorCode::bad_image, fmt::format("{}: {}", file, errno_text(text.error().value)));
  const Json json = TRY(read_json_object(*text, file, JsonBounds{}));
  return TreeFacts{.counts = TRY(read_counts(json)),
                   .diff_ids = TRY(read_optional_texts(json, "diff_ids", kLayersMax))};
}

Result<void> ImageStore::publish_tree(std::string_view tree, const TreeFacts& facts) {
  {
    const auto folder = open_at(folder_.get(), kNewTree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!folder) return no_room(kNewTree, folder.error().value);
    const auto file = open_at(folder->get(), kFacts, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!file) return no_room(kFacts, file.error().value);
    const Json json = {{"counts", counts_to_json(facts.counts)}, {"diff_ids", facts.diff_ids}};
    const auto written = write_all(file->get(), dump_json(json));
    if (!written) return no_room(kFacts, written.error().value);
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
  return before ? drop_unless_used(before->tree) : Result<void>();
}

// A file that was written anew has another inode, and so another key.
Result<void> ImageStore::write_path(const SourceIdentity& identity, const ImageRecord& record) {
  const std::string file = joined(kPaths, identity.key);
  std::vector<std::pair<std::string, std::string>> before;  // records of the path or the file, and their trees
  for (const std::string& name : names_in(kPaths.data())) {
    std::string other = joined(kPaths, name);
    auto known = read_record(other);
    if (known && (other == file || known->source == record.source))
      before.emplace_back(std::move(other), std::move(known->tree));
  }
  TRY_VOID(write_record(file, record));
  for (const auto& [other, tree] : before) {
    if (other != file && ::unlinkat(folder_.get(), other.c_str(), 0) != 0) return no_room(other, errno);
    TRY_VOID(drop_unless_used(tree));
  }
  return {};
}

std::optional<ImageRecord> ImageStore::find_path(const SourceIdentity& identity) const {
  auto record = read_record(joined(kPaths, identity.key));
  if (!record || record->identity != identity.state || !has_tree(record->tree)) return std::nullopt;
  return std::move(*record);
}

Result<Fd> ImageStore::open_record_file(const std::string& file) const {
  auto opened = open_at(folder_.get(), file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (opened) return std::move(*opened);
  return fail(ErrorCode::unknown_image, fmt::format("{}: {}", file, errno_text(opened.error().value)));
}

Result<ImageRecord> ImageStore::read_record(const std::string& file) const {
  const Fd opened = TRY(open_record_file(file));
  return read_record(opened, file);
}

Result<ImageRecord> ImageStore::read_record(const Fd& opened, const std::string& file) const {
  const auto text = read_all(opened.get(), kRecordBytesMax);
  if (!text) return fail(ErrorCode::bad_image, fmt::format("{}: {}", file, errno_text(text.error().value)));
  auto record = record_from_json(*text);
  if (!record) {
    record.error().message =
        fmt::format("{}/{} is no record of an image ({}); load the image again", path_, file, record.error().message);
  }
  return record;
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
  Fd opened = TRY(open_record_file(file));
  if (!take_lock(opened.get(), LOCK_SH)) return no_room(file, errno);
  LoadedImage image{.record = TRY(read_record(opened, file)), .root = {}, .root_path = {}, .lock = {}, .name_lock = {}};
  image.name_lock = std::move(opened);
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

ListedImage ImageStore::look_at(std::string name, const std::string& file) const {
  ListedImage image{.name = std::move(name), .record = {}, .damage = {}};
  const auto opened = open_record_file(file);
  auto record = opened ? read_record(*opened, file) : std::unexpected(opened.error());
  if (!record) {
    image.damage = record.error().message;
    return image;
  }
  image.record = std::move(*record);
  image.is_in_use = ::flock(opened->get(), LOCK_EX | LOCK_NB) != 0;
  if (!has_tree(image.record.tree)) image.damage = fmt::format("its tree is gone from {}; load the image again", path_);
  return image;
}

std::vector<ListedImage> ImageStore::list() const {
  std::vector<ListedImage> images;
  for (const std::string& name : names_in(kNames.data())) images.push_back(look_at(name, joined(kNames, name)));
  std::ranges::sort(images, {}, &ListedImage::name);
  std::vector<ListedImage> by_path;
  for (const std::string& name : names_in(kPaths.data())) {
    ListedImage image = look_at("", joined(kPaths, name));
    image.name = image.record.source;
    if (!image.name.empty()) by_path.push_back(std::move(image));
  }
  std::ranges::sort(by_path, {}, &ListedImage::name);
  std::ranges::move(by_path, std::back_inserter(images));
  return images;
}

// The file of the record, below the store's folder.
Result<std::string> ImageStore::find_record(std::string_view reference) const {
  if (!folder_.is_open()) return unknown(reference);
  if (!is_image_path(reference)) {
    std::string file = joined(kNames, reference);
    const bool is_there = is_image_name(reference) && ::faccessat(folder_.get(), file.c_str(), F_OK, 0) == 0;
    return is_there ? Result<std::string>(std::move(file)) : unknown(reference);
  }
  std::error_code error;
  const std::string path = std::filesystem::weakly_canonical(reference, error).string();
  for (const std::string& name : names_in(kPaths.data())) {
    std::string file = joined(kPaths, name);
    const auto record = read_record(file);
    if (record && record->source == path) return file;
  }
  return fail(
      ErrorCode::unknown_image,
      fmt::format("no image was loaded by the path {}; belljar image ls shows those that were", quote(reference)));
}

Result<ListedImage> ImageStore::find(std::string_view reference) const {
  return look_at(std::string(reference), TRY(find_record(reference)));
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
  return in_use();
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

// Leaves a tree that is in use to collect_garbage().
Result<void> ImageStore::drop_unless_used(const std::string& tree) {
  if (count_references(tree) > 0) return {};
  auto claim = claim_tree(tree);
  return claim ? drop_tree(tree, std::move(*claim)) : Result<void>();
}

Result<void> ImageStore::remove(std::string_view reference) {
  if (!folder_.is_open()) return unknown(reference);
  const Fd held = TRY(lock());
  const std::string file = TRY(find_record(reference));
  const Fd opened = TRY(open_record_file(file));
  if (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0) return in_use();
  const auto record = read_record(opened, file);
  const bool is_last = record && count_references(record->tree) == 1;
  Fd claim;
  if (is_last) claim = TRY(claim_tree(record->tree));
  if (::unlinkat(folder_.get(), file.c_str(), 0) != 0) return no_room(file, errno);
  return is_last ? drop_tree(record->tree, std::move(claim)) : Result<void>();
}

Result<std::uint64_t> ImageStore::collect_garbage() {
  if (!folder_.is_open()) return 0;
  const Fd loading = TRY(lock_file("load.lock"));
  std::uint64_t removed = clear_building();
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
