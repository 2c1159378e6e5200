#include "tiers/container/readable.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spec/errors.h"

namespace belljar::container {
namespace {

enum class Permission : unsigned { search = 1, read = 4 };

bool is_permitted(const struct stat& status, Permission permission) {
  const unsigned bit = static_cast<unsigned>(permission);
  if (status.st_uid == ::geteuid()) return (status.st_mode & (bit << 6)) != 0;
  if (status.st_gid == ::getegid()) return (status.st_mode & (bit << 3)) != 0;
  return (status.st_mode & bit) != 0;
}

Result<void> check_one(const std::string& part, const std::string& path, Permission permission) {
  struct stat status{};
  if (::lstat(part.c_str(), &status) != 0) {
    return fail(ErrorCode::bad_mount, fmt::format("--mount {}: {}: {}", path, part, errno_text(errno)));
  }
  if (is_permitted(status, permission)) return {};
  return fail(ErrorCode::bad_mount,
              fmt::format("--mount {}: {} is open to the caller only by a supplementary group, which can't be dropped "
                          "here; give it to the caller's own user or group, or run as root",
                          path, part));
}

}  // namespace

Result<void> check_readable_without_groups(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    TRY_VOID(check_one(path.substr(0, slash), path, Permission::search));
  }
  return check_one(path, path, Permission::read);
}

}  // namespace belljar::container
