#include "tiers/kernel/broker_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "tiers/kernel/broker_shared.h"

namespace belljar::broker {
namespace {

using kernel::shm::Facts;
using kernel::shm::ListedName;
using kernel::shm::Operation;
using kernel::shm::Request;

// The host kernel's trees are this process's own, and none of a guest's business; guests have trees of their own there.
// Of /tmp they ask for what the caller mounted below it.
constexpr std::string_view kHidden[] = {"proc", "sys", "dev"};
// What guests may read of them: it tells of the sandbox's share of the machine.
constexpr std::string_view kLive[] = {"proc/cpuinfo", "proc/meminfo", "proc/stat", "proc/loadavg", "proc/uptime"};

// Of the sandbox's memory, for copies of what the cache does not keep.
constexpr std::uint64_t kCopiesShare = 32;

Facts facts_of(const struct stat& status) {
  Facts facts{};
  facts.number = status.st_ino;
  facts.size = static_cast<std::uint64_t>(status.st_size);
  facts.blocks = static_cast<std::uint64_t>(status.st_blocks);
  facts.device = status.st_dev;
  facts.mode = status.st_mode;
  facts.uid = status.st_uid;
  facts.gid = status.st_gid;
  facts.links = static_cast<std::uint32_t>(status.st_nlink);
  facts.access_s = status.st_atim.tv_sec;
  facts.modify_s = status.st_mtim.tv_sec;
  facts.change_s = status.st_ctim.tv_sec;
  facts.access_ns = static_cast<std::uint32_t>(status.st_atim.tv_nsec);
  facts.modify_ns = static_cast<std::uint32_t>(status.st_mtim.tv_nsec);
  facts.change_ns = static_cast<std::uint32_t>(status.st_ctim.tv_nsec);
  return facts;
}

bool is_name(std::string_view part) {
  return !part.empty() && part != "." && part != "..";
}

bool is_hidden(std::string_view path) {
  const std::string_view first = path.substr(0, path.find('/'));
  return std::ranges::find(kHidden, first) != std::end(kHidden) && path.size() > first.size();
}

}  // namespace

bool Files::open(const content_cache::Keeper& keeper, const kernel::shm::Boot& boot) {
  keeper_ = &keeper;
  boot_ = &boot;
  if (auto cache = content_cache::Index::map(kCacheFd, false)) cache_ = *cache;
  ::close(kCacheFd);  // so that nothing leads from here to the file
  auto root = open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY);
  if (!root) return false;
  root_ = std::move(*root);
  void* const mapped =
      ::mmap(nullptr, kernel::kContentSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, kContentFd, 0);
  if (mapped == MAP_FAILED) return false;
  content_ = static_cast<char*>(mapped);
  return true;
}

void Files::answer(Request& request) {
  Question question;
  question.operation = *const_cast<const volatile Operation*>(&request.operation);
  for (int i = 0; i < 4; ++i) question.arguments[i] = *const_cast<const volatile std::uint64_t*>(&request.arguments[i]);
  std::array<char, Request::kPathSize> path;
  std::memcpy(path.data(), request.path, path.size());
  path.back() = '\0';
  question.path = path.data();
  release_listing(request);
  request.result = decide(question, request);
  request.state.store(Request::kDone);
  wake(request.state);
}

std::int64_t Files::decide(const Question& question, Request& request) {
  if (question.operation == Operation::read_live) return read_live(question, request);
  if (is_hidden(question.path)) return -ENOENT;
  switch (question.operation) {
    case Operation::stat:
      return stat(question, request);
    case Operation::read_link:
      return read_link(question, request);
    case Operation::list:
      return list(question, request);
    case Operation::fetch:
      return fetch(question, request);
    case Operation::read:
      return read(question, request);
    default:
      return -ENOSYS;
  }
}

// Part by part, and never through a link: a guest resolves links itself, in its own tree.
SysResult<int> Files::find_folder(std::string_view path) {
  if (path.empty()) return root_.get();
  if (path == last_path_) return last_folder_.get();
  Fd folder;
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string part(rest.substr(0, slash));
    rest = rest.substr(std::min(slash + 1, rest.size()));
    if (!is_name(part)) return std::unexpected(Errno{EINVAL});
    folder =
        TRY(open_at(folder.is_open() ? folder.get() : root_.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW));
  }
  last_folder_ = std::move(folder);
  last_path_ = path;
  return last_folder_.get();
}

SysResult<Files::Place> Files::find(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name_begin = slash == std::string::npos ? 0 : slash + 1;
  Place place{TRY(find_folder(std::string_view(path).substr(0, name_begin == 0 ? 0 : slash))), path.substr(name_begin)};
  if (!path.empty() && !is_name(place.name)) return std::unexpected(Errno{EINVAL});
  return place;
}

std::int64_t Files::stat(const Question& question, Request& request) {
  const auto place = find(question.path);
  if (!place) return -place.error().value;
  struct stat status{};
  if (::fstatat(place->folder, place->name.c_str(), &status, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0) return -errno;
  request.facts = facts_of(status);
  return 0;
}

std::int64_t Files::read_link(const Question& question, Request& request) {
  const auto place = find(question.path);
  if (!place) return -place.error().value;
  std::array<char, Request::kPathSize> target;
  const ssize_t length = ::readlinkat(place->folder, place->name.c_str(), target.data(), target.size());
  if (length < 0) return -errno;
  std::memcpy(request.data, target.data(), static_cast<std::size_t>(length));
  return length;
}

std::optional<std::uint64_t> Files::take_content(std::uint64_t size) {
  if (size > kernel::kContentSize || content_used_ > kernel::kContentSize - size) return std::nullopt;
  const std::uint64_t offset = content_used_;
  content_used_ = kernel::page_up(content_used_ + size);
  return offset;
}

void Files::release_listing(const Request& request) {
  const auto found = listings_.find(&request);
  if (found == listings_.end()) return;
  // Where the host can't, they stay until the end.
  ::madvise(content_ + found->second.offset, found->second.size, MADV_REMOVE);
  listings_.erase(found);
}

std::int64_t Files::list(const Question& question, Request& request) {
  const auto place = find(question.path);
  if (!place) return -place.error().value;
  const char* const name = place->name.empty() ? "." : place->name.c_str();
  auto folder = open_at(place->folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return -folder.error().value;
  const int fd = folder->release();
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), ::closedir);
  if (!stream) {
    ::close(fd);
    return -ENOMEM;
  }
  std::vector<char> records;
  while (const dirent* const entry = ::readdir(stream.get())) {
    const std::string_view text(entry->d_name);
    struct stat status{};
    if (text == "." || text == ".." || ::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const ListedName listed{facts_of(status), static_cast<std::uint32_t>(text.size()), 0};
    const auto* const bytes = reinterpret_cast<const char*>(&listed);
    records.insert(records.end(), bytes, bytes + sizeof listed);
    records.insert(records.end(), text.begin(), text.end());
    records.resize((records.size() + 7) & ~std::size_t{7});
  }
  const auto offset = take_content(records.size());
  if (!offset) return -ENOSPC;
  std::memcpy(content_ + *offset, records.data(), records.size());
  listings_[&request] = {*offset, kernel::page_up(records.size())};
  request.offset = *offset;
  request.size = records.size();
  return 0;
}

SysResult<Fd> Files::open_file(const std::string& path) {
  const Place place = TRY(find(path));
  return open_at(place.folder, place.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

bool Files::goes_in_parts(const Question& question, std::uint64_t size) {
  if (question.arguments[0] == kernel::shm::kWhole) return false;
  // Init has written it by now. What a guest makes of it later is not seen, and would be the guest's own memory.
  if (!copies_max_) copies_max_ = *const_cast<const volatile std::uint64_t*>(&boot_->memory_bytes) / kCopiesShare;
  return size > *copies_max_ || copied_ > *copies_max_ - size;
}

std::int64_t Files::read(const Question& question, Request& request) {
  const auto file = open_file(question.path);
  if (!file) return -file.error().value;
  struct stat status{};
  if (::fstat(file->get(), &status) != 0) return -errno;
  if (!S_ISREG(status.st_mode)) return -EINVAL;
  const std::uint64_t size = std::min<std::uint64_t>(question.arguments[1], Request::kDataSize);
  const ssize_t count = ::pread(file->get(), request.data, size, static_cast<off_t>(question.arguments[0] & INT64_MAX));
  return count < 0 ? -errno : count;
}

std::int64_t Files::fetch(const Question& question, Request& request) {
  const auto file = open_file(question.path);
  if (!file) return -file.error().value;
  struct stat status{};
  if (::fstat(file->get(), &status) != 0) return -errno;
  if (!S_ISREG(status.st_mode)) return -EINVAL;
  if (show_cached(file->get(), status, request)) return 0;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (goes_in_parts(question, size)) {
    request.size = size;
    return kernel::shm::kInParts;
  }
  const auto offset = take_content(size);
  if (!offset) return -ENOSPC;
  std::uint64_t done = 0;
  while (done < size) {
    const ssize_t count = ::pread(file->get(), content_ + *offset + done, size - done, static_cast<off_t>(done));
    if (count < 0) return -errno;
    if (count == 0) break;
    done += static_cast<std::uint64_t>(count);
  }
  copied_ += kernel::page_up(size);
  request.offset = *offset;
  request.size = done;
  request.image_id = *offset / kernel::kPageSize;
  request.text = {};
  return 0;
}

bool Files::show_cached(int file, const struct stat& status, Request& request) const {
  if (!cache_ || status.st_size == 0) return false;
  const content_cache::Key key = content_cache::key_of(status);
  auto found = cache_->find(key);
  if (!found && keeper_->keep(file)) found = cache_->find(key);
  if (!found) return false;
  const auto place = [](std::uint64_t offset) { return kernel::kContentSize + offset; };
  const content_cache::PatchedText& text = found->text;
  request.offset = place(found->offset);
  request.size = key.size;
  request.image_id = request.offset / kernel::kPageSize;
  request.text = {place(text.source), text.size, text.distance, place(text.offset), text.trampoline_size};
  return true;
}

std::int64_t Files::read_live(const Question& question, Request& request) const {
  if (std::ranges::find(kLive, question.path) == std::end(kLive)) return -ENOENT;
  const auto file = open_at(root_.get(), question.path.c_str(), O_RDONLY | O_NOFOLLOW);
  if (!file) return -file.error().value;
  std::vector<char> text(Request::kDataSize);
  const ssize_t count =
      ::pread(file->get(), text.data(), text.size(), static_cast<off_t>(question.arguments[0] & INT32_MAX));
  if (count < 0) return -errno;
  std::memcpy(request.data, text.data(), static_cast<std::size_t>(count));
  return count;
}

}  // namespace belljar::broker
