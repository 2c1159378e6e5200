#include "host/privilege.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "base/fd.h"

namespace belljar::host {
namespace {

constexpr std::size_t kUidMapBytesMax = 64 << 10;  // 340 lines at most (user_namespaces(7))

// Newer than Debian 12's header: ABI 6 added scopes (landlock(7)).
struct RulesetAttributes {
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;
  std::uint64_t scoped;
};
constexpr std::uint64_t kScopeAbstractUnixSocket = 1;
constexpr std::uint64_t kScopeSignal = 2;
constexpr int kAbiRefer = 2;
constexpr int kAbiScopes = 6;

// Not LANDLOCK_ACCESS_FS_TRUNCATE: with it every open(2), also for reading, walks up to the root to learn whether the
// file may be truncated later, which makes opening a file 1.5 times as dear. Files that may not change lie on read-only
// mounts.
std::uint64_t change_rights(int abi) {
  std::uint64_t rights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                         LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                         LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                         LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
  if (abi >= kAbiRefer) rights |= LANDLOCK_ACCESS_FS_REFER;
  return rights;
}

int result_or_errno(long result) {
  return result < 0 ? -errno : static_cast<int>(result);
}

constexpr unsigned kUnchanged = ~0U;  // setresuid(2)

// Raises again what a change of the effective user id took out of the effective set; the permitted set still has it.
int raise_permitted_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return -errno;
  for (__user_cap_data_struct& set : sets) set.effective = set.permitted;
  return result_or_errno(::syscall(SYS_capset, &header, sets));
}

int add_rule(int ruleset_fd, int path_fd, std::uint64_t rights) {
  landlock_path_beneath_attr rule{};
  rule.allowed_access = rights;
  rule.parent_fd = path_fd;
  return result_or_errno(::syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0));
}

}  // namespace

int forbid_new_capabilities() {
  for (int capability = 0; capability <= CAP_LAST_CAP + 16; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
      if (errno == EINVAL) break;  // past the last capability of this kernel
      return -errno;
    }
  }
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return -errno;
  constexpr unsigned long kBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                                  SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                  SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  return ::prctl(PR_SET_SECUREBITS, kBits, 0, 0, 0) != 0 ? -errno : 0;
}

int set_identity(unsigned uid, unsigned gid) {
  if (::syscall(SYS_setresgid, gid, gid, gid) != 0) return -errno;
  return result_or_errno(::syscall(SYS_setresuid, uid, uid, uid));
}

// A change of ids also resets two properties of the process that are its owner's to choose (prctl(2)).
ActAsUser::ActAsUser(unsigned id)
    : uid_before_(::geteuid()), gid_before_(::getegid()), dumpable_before_(::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)) {
  ::prctl(PR_GET_PDEATHSIG, &death_signal_before_, 0, 0, 0);
  result_ = result_or_errno(::syscall(SYS_setresgid, kUnchanged, id, kUnchanged));
  if (result_ == 0) result_ = result_or_errno(::syscall(SYS_setresuid, kUnchanged, id, kUnchanged));
  if (result_ == 0) result_ = raise_permitted_capabilities();
}

ActAsUser::~ActAsUser() {
  // Going on as someone else would be worse than ending here.
  if (::syscall(SYS_setresuid, kUnchanged, uid_before_, kUnchanged) != 0) std::abort();
  if (::syscall(SYS_setresgid, kUnchanged, gid_before_, kUnchanged) != 0) std::abort();
  if (dumpable_before_ == 1) ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, death_signal_before_, 0, 0, 0);
}

int clear_capabilities() {
  return keep_capabilities(0);
}

int keep_capabilities(std::uint64_t capabilities) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  for (unsigned i = 0; i < 2; ++i) {
    const auto word = static_cast<std::uint32_t>(capabilities >> (32 * i));
    sets[i] = {.effective = word, .permitted = word, .inheritable = 0};
  }
  return result_or_errno(::syscall(SYS_capset, &header, sets));
}

bool is_root_of_host() {
  if (::geteuid() != 0) return false;
  // "0 0 4294967295": every id is itself, as in the initial user namespace only (user_namespaces(7)).
  const auto map = read_file_at(AT_FDCWD, "/proc/self/uid_map", kUidMapBytesMax);
  if (!map) return false;
  const char* at = map->data();
  const char* const end = at + map->size();
  std::array<unsigned, 3> numbers{};  // first id inside, first id outside, how many
  for (unsigned& number : numbers) {
    const auto parsed = std::from_chars(std::find_if(at, end, [](char c) { return c != ' '; }), end, number);
    if (parsed.ec != std::errc()) return false;
    at = parsed.ptr;
  }
  return numbers == std::array{0U, 0U, ~0U};
}

bool has_capability(int capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return false;
  return ((sets[capability / 32].effective >> (capability % 32)) & 1U) != 0;
}

int landlock_abi() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

int landlock_create(int abi) {
  RulesetAttributes attributes{change_rights(abi) | LANDLOCK_ACCESS_FS_EXECUTE, 0, 0};
  std::size_t size = sizeof attributes.handled_access_fs;
  if (abi >= kAbiScopes) {
    attributes.scoped = kScopeAbstractUnixSocket | kScopeSignal;
    size = sizeof attributes;
  }
  return result_or_errno(::syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
}

int landlock_grant_changes(int ruleset_fd, int abi, int path_fd, PathKind kind) {
  constexpr std::uint64_t kOfFolders = LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                       LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                       LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                       LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                       LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
  return add_rule(ruleset_fd, path_fd,
                  kind == PathKind::folder ? change_rights(abi) : change_rights(abi) & ~kOfFolders);
}

int landlock_grant_execution(int ruleset_fd, int path_fd) {
  return add_rule(ruleset_fd, path_fd, LANDLOCK_ACCESS_FS_EXECUTE);
}

int landlock_enforce(int ruleset_fd) {
  return result_or_errno(::syscall(SYS_landlock_restrict_self, ruleset_fd, 0));
}

}  // namespace belljar::host
