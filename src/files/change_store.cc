#include "files/change_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/utf8.h"
#include "files/list_folder.h"
#include "image/cache_folder.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kIdDigits = 8;
constexpr const char* kManifest = "changes.json";
constexpr const char* kNewManifest = "changes.new";
constexpr const char* kContents = "contents";
constexpr std::string_view kNew = "new-";
constexpr std::string_view kOld = "old-";
constexpr std::size_t kManifestBytesMax = std::size_t{1} << 30;

std::unexpected<Error> store_failed(std::string_view what, int error) {
  return fail(ErrorCode::bad_changes, fmt::format("the store of changes: {}: {}", what, errno_text(error)));
}

Result<std::string> random_id() {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) return store_failed("no random number", errno);
  return fmt::format("{:08x}", number);
}

bool take_lock(int fd, int operation) {
  while (::flock(fd, operation) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

SysResult<Fd> open_folder(int parent_fd, const std::string& name) {
  return open_at(parent_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<void> write_manifest(int folder_fd, const Changeset& changeset) {
  const auto file = open_at(folder_fd, kNewManifest, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  if (!file) return store_failed(kManifest, file.error().value);
  const auto written = write_all(file->get(), changeset_to_json(changeset));
  if (!written) return store_failed(kManifest, written.error().value);
  if (::renameat(folder_fd, kNewManifest, folder_fd, kManifest) == 0) return {};
  return store_failed(kManifest, errno);
}

Result<Changeset> read_manifest(int folder_fd) {
  const auto text = read_file_at(folder_fd, kManifest, kManifestBytesMax);
  if (!text) return store_failed(kManifest, text.error().value);
  return read_changeset(*text);
}

std::uint64_t content_size(const Changeset& changeset) {
  std::uint64_t size = 0;
  for (const Change& change : changeset.changes) size += change.kind == FileKind::regular ? change.size : 0;
  return size;
}

// Whether the folder is still the one of that name: another process may have removed it before it was locked.
bool is_named(int parent_fd, const std::string& name, int folder_fd) {
  struct stat named{};
  struct stat opened{};
  return ::fstatat(parent_fd, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(folder_fd, &opened) == 0 &&
         named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

}  // namespace

Result<std::string> change_store_folder(const char* (*lookup)(const char* name)) {
  const char* const state = lookup("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return std::string(state) + "/belljar/changes";
  const char* const home = lookup("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.local/state/belljar/changes";
  return fail(ErrorCode::bad_changes, "no place to keep changes: set HOME or XDG_STATE_HOME to an absolute path");
}

bool is_changeset_id(std::string_view id) {
  return id.size() == kIdDigits &&
         std::ranges::all_of(id, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

NewChangeset::~NewChangeset() {
  if (store_.is_open()) remove_tree(store_.get(), name_.c_str());
}

Result<std::string> NewChangeset::publish(const Changeset& changeset) {
  TRY_VOID(write_manifest(folder_.get(), changeset));
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    std::string id = TRY(random_id());
    if (::renameat2(store_.get(), name_.c_str(), store_.get(), id.c_str(), RENAME_NOREPLACE) == 0) {
      store_.reset();
      folder_.reset();
      return id;
    }
    if (errno != EEXIST) return store_failed(id, errno);
  }
  return store_failed("no free id", EEXIST);
}

Result<ChangeStore> ChangeStore::open(const std::string& path) {
  auto folder = open_private_folder(
      path,
      {.what = "the store of changes", .remedy = "set XDG_STATE_HOME to a folder that you can write", .mode = 0700});
  if (!folder) return fail(ErrorCode::bad_changes, folder.error().message);
  ChangeStore store(std::move(*folder));
  store.clear_abandoned();
  return store;
}

// Under the lock of the whole store, as begin() is: a set that was just made has no lock yet, and is not abandoned.
void ChangeStore::clear_abandoned() {
  const auto readable = open_folder(folder_.get(), ".");
  if (!readable || !take_lock(readable->get(), LOCK_EX)) return;
  const auto listing = list_folder(readable->get(), std::numeric_limits<std::size_t>::max());
  if (!listing) return;
  for (const FolderEntry& entry : listing->entries) {
    if (!entry.name.starts_with(kNew) && !entry.name.starts_with(kOld)) continue;
    const auto folder = open_folder(folder_.get(), entry.name);
    if (!folder || !take_lock(folder->get(), LOCK_EX | LOCK_NB)) continue;
    remove_tree(folder_.get(), entry.name.c_str());
    ++abandoned_count_;
  }
}

Result<NewChangeset> ChangeStore::begin() const {
  const auto whole = open_folder(folder_.get(), ".");
  if (!whole) return store_failed("folder", whole.error().value);
  if (!take_lock(whole->get(), LOCK_EX)) return store_failed("lock", errno);
  auto store = open_folder(folder_.get(), ".");
  if (!store) return store_failed("folder", store.error().value);
  NewChangeset set(std::move(*store), std::string(kNew) + TRY(random_id()));
  const char* const name = set.name_.c_str();
  if (::mkdirat(set.store_.get(), name, 0700) != 0) {
    const int error = errno;
    set.store_.reset();  // nothing of ours is there to be removed
    return store_failed(set.name_, error);
  }
  auto folder = open_folder(set.store_.get(), set.name_);
  if (!folder) return store_failed(set.name_, folder.error().value);
  set.folder_ = std::move(*folder);
  if (!take_lock(set.folder_.get(), LOCK_EX)) return store_failed(set.name_, errno);
  if (::mkdirat(set.folder_.get(), kContents, 0700) != 0) return store_failed(set.name_, errno);
  auto contents = open_folder(set.folder_.get(), kContents);
  if (!contents) return store_failed(set.name_, contents.error().value);
  set.contents_ = std::move(*contents);
  return set;
}

std::vector<ListedChangeset> ChangeStore::list() const {
  std::vector<ListedChangeset> sets;
  const auto readable = open_folder(folder_.get(), ".");
  if (!readable) return sets;
  const auto listing = list_folder(readable->get(), std::numeric_limits<std::size_t>::max());
  if (!listing) return sets;
  for (const FolderEntry& entry : listing->entries) {
    if (!is_changeset_id(entry.name)) continue;
    const auto folder = open_folder(folder_.get(), entry.name);
    if (!folder) continue;
    auto changeset = read_manifest(folder->get());
    if (!changeset) {
      sets.push_back({.id = entry.name, .changeset = {}, .damage = changeset.error().message});
      continue;
    }
    const std::uint64_t size = content_size(*changeset);
    sets.push_back({entry.name, std::move(*changeset), size});
  }
  std::ranges::stable_sort(sets, {}, [](const ListedChangeset& set) { return set.changeset.created_ns; });
  return sets;
}

Result<KeptChangeset> ChangeStore::take(std::string_view id, ChangesetUse use) const {
  const auto unknown = [&] {
    return fail(ErrorCode::no_changes,
                fmt::format("no changes are kept as {}; belljar changes list shows what there is", quote(id)));
  };
  if (!is_changeset_id(id)) return unknown();
  KeptChangeset kept{.id = std::string(id)};
  auto folder = open_folder(folder_.get(), kept.id);
  if (!folder) return folder.error().value == ENOENT ? unknown() : store_failed(id, folder.error().value);
  if (!take_lock(folder->get(), (use == ChangesetUse::reading ? LOCK_SH : LOCK_EX) | LOCK_NB)) {
    return fail(ErrorCode::bad_changes, fmt::format("another belljar is at work on the changes {}", id));
  }
  if (!is_named(folder_.get(), kept.id, folder->get())) return unknown();
  auto changeset = read_manifest(folder->get());
  auto contents = open_folder(folder->get(), kContents);
  kept.folder = std::move(*folder);
  if (use == ChangesetUse::discarding) {
    if (changeset) kept.changeset = std::move(*changeset);
    return kept;
  }
  kept.changeset = TRY(std::move(changeset));
  if (!contents) return store_failed(kContents, contents.error().value);
  kept.contents = std::move(*contents);
  return kept;
}

Result<void> ChangeStore::put_back(const KeptChangeset& kept) const {
  return kept.changeset.changes.empty() ? remove(kept) : write_manifest(kept.folder.get(), kept.changeset);
}

Result<void> ChangeStore::remove(const KeptChangeset& kept) const {
  const std::string gone = fmt::format("{}{}", kOld, kept.id);
  if (::renameat(folder_.get(), kept.id.c_str(), folder_.get(), gone.c_str()) != 0) {
    return store_failed(kept.id, errno);
  }
  remove_tree(folder_.get(), gone.c_str());
  return {};
}

}  // namespace belljar
