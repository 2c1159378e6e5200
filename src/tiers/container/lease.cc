#include "tiers/container/lease.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "host/privilege.h"
#include "image/cache_folder.h"
#include "image/host_image.h"
#include "spec/errors.h"
#include "tiers/container/plan.h"

namespace belljar::container {
namespace {

constexpr unsigned kFirstUid = 0x70000000;
constexpr unsigned kSlotCount = 4096;  // up to the largest uid that every tool takes, 2^31 - 1

struct IdInterval {
  std::uint64_t first;
  std::uint64_t count;
};

// Reads the intervals of subuid(5). Lines it can't read are left out: they grant nothing either.
void read_subordinate_ids(const char* path, std::vector<IdInterval>* intervals) {
  const auto content = read_file_at(AT_FDCWD, path, 1 << 20);
  if (!content) return;
  std::string_view rest = *content;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t first_colon = line.find(':');
    if (first_colon == std::string_view::npos) continue;
    IdInterval interval{};
    const char* last = line.data() + line.size();
    const auto first = std::from_chars(line.data() + first_colon + 1, last, interval.first);
    if (first.ec != std::errc() || first.ptr == last || *first.ptr != ':') continue;
    if (std::from_chars(first.ptr + 1, last, interval.count).ec == std::errc()) intervals->push_back(interval);
  }
}

bool overlaps(const std::vector<IdInterval>& intervals, std::uint64_t base) {
  for (const IdInterval& interval : intervals) {
    if (interval.first < base + kIdRangeSize && base < interval.first + interval.count) return true;
  }
  return false;
}

std::string describe_shortage(unsigned given_away) {
  constexpr const char* kRemedy = "leave some of them out there";
  const std::uint64_t last = kFirstUid + std::uint64_t{kSlotCount} * kIdRangeSize - 1;
  if (given_away == kSlotCount) {
    return fmt::format(
        "/etc/subuid and /etc/subgid give away all uids from {} to {}, of which each sandbox takes {}; {}", kFirstUid,
        last, kIdRangeSize, kRemedy);
  }
  if (given_away == 0) return fmt::format("all {} uid ranges are in use by running sandboxes", kSlotCount);
  return fmt::format(
      "running sandboxes use all {} uid ranges that /etc/subuid and /etc/subgid leave of the uids from {} to {}; end "
      "some sandboxes, or {}",
      kSlotCount - given_away, kFirstUid, last, kRemedy);
}

}  // namespace

Result<std::string> run_folder() {
  std::string folder;
  if (host::is_root_of_host()) {
    folder = "/run/belljar";
  } else if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime == '/') {
    folder = std::string(runtime) + "/belljar";
  } else {
    // Not in /tmp: there, anybody could take the name first.
    const std::string cache = TRY(cache_folder());
    TRY_VOID(open_cache_folder(cache));
    folder = cache + "/run";
  }
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(ErrorCode::host_unsupported, fmt::format("can't make the folder {}: {}", folder, errno_text(errno)));
  }
  struct stat status{};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & 022) != 0) {
    return fail(ErrorCode::host_unsupported,
                fmt::format("{} must be a folder that only its owner, uid {}, can write", folder, ::geteuid()));
  }
  return folder;
}

Result<LeaseFile> LeaseFile::open(const std::string& name) {
  const std::string path = TRY(run_folder()) + "/" + name;
  auto fd = open_at(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!fd) {
    return fail(ErrorCode::host_unsupported, fmt::format("can't open {}: {}", path, errno_text(fd.error().value)));
  }
  return LeaseFile(std::move(*fd));
}

bool LeaseFile::try_take(std::uint64_t slot) const {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(slot);
  lock.l_len = 1;
  return ::fcntl(fd_.get(), F_OFD_SETLK, &lock) == 0;
}

Result<UidRange> lease_uid_range() {
  LeaseFile file = TRY(LeaseFile::open("uid-ranges"));
  std::vector<IdInterval> taken;
  read_subordinate_ids("/etc/subuid", &taken);
  read_subordinate_ids("/etc/subgid", &taken);
  // Starting at a number of this process keeps a range from being used again at once.
  unsigned given_away = 0;
  const unsigned start = static_cast<unsigned>(::getpid()) % kSlotCount;
  for (unsigned i = 0; i < kSlotCount; ++i) {
    const unsigned slot = (start + i) % kSlotCount;
    const unsigned base = kFirstUid + slot * kIdRangeSize;
    if (overlaps(taken, base)) {
      ++given_away;
    } else if (file.try_take(slot)) {
      return UidRange{std::move(file), base};
    }
  }
  return fail(ErrorCode::no_resources, describe_shortage(given_away));
}

}  // namespace belljar::container
