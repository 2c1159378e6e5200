#include "egress/confine_self.h"

#include <fmt/format.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "host/privilege.h"
#include "seccomp/filter.h"
#include "spec/errors.h"

namespace belljar::egress {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;  // sanitizers reserve terabytes of address space
#else
constexpr bool kIsSanitized = false;
#endif

constexpr std::uint64_t kMemoryBytes = std::uint64_t{128} << 20;
constexpr std::uint64_t kMemoryBytesPerConnection = std::uint64_t{512} << 10;
constexpr std::uint64_t kFilesPerConnection = 3;  // two sockets, and one to a name server
constexpr std::uint64_t kOtherFiles = 256;

Result<void> check(const char* step, long result) {
  if (result >= 0) return {};
  return fail(ErrorCode::start_failed, fmt::format("{}: {}", step, errno_text(static_cast<int>(-result))));
}

long errno_result(long result) {
  return result < 0 ? -errno : result;
}

void set_limits(const EgressConfig& config) {
  const auto set = [](decltype(RLIMIT_AS) limit, rlim_t value) {
    rlimit current{};
    ::getrlimit(limit, &current);
    current.rlim_cur = current.rlim_max = std::min(value, current.rlim_max);
    ::setrlimit(limit, &current);
  };
  set(RLIMIT_CORE, 1);  // 0 would still start a collector that core_pattern names (core(5))
  set(RLIMIT_NOFILE, kOtherFiles + kFilesPerConnection * config.limits.connections);
  if (!kIsSanitized) set(RLIMIT_AS, kMemoryBytes + kMemoryBytesPerConnection * config.limits.connections);
}

Result<void> take_identity(unsigned id) {
  if (id == 0) return {};
  TRY_VOID(check("setgroups", errno_result(::syscall(SYS_setgroups, 0, nullptr))));
  return check("setresuid", host::set_identity(id, id));
}

// Nothing is granted: no file can be changed or executed, also by a descriptor that comes later.
Result<void> enforce_landlock() {
  const int abi = host::landlock_abi();
  if (abi == 0) return {};
  const int rules = host::landlock_create(abi);
  TRY_VOID(check("landlock", rules));
  const int enforced = host::landlock_enforce(rules);
  ::close(rules);
  return check("landlock", enforced);
}

}  // namespace

Result<void> confine_self(const EgressConfig& config) {
  set_limits(config);
  TRY_VOID(check("dumpable", errno_result(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))));
  if (config.run_as != 0) TRY_VOID(check("capabilities", host::forbid_new_capabilities()));
  TRY_VOID(take_identity(config.run_as));
  TRY_VOID(check("capabilities", host::clear_capabilities()));
  TRY_VOID(check("no_new_privs", errno_result(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))));
  TRY_VOID(enforce_landlock());
  const auto filter = egress_profile().program;
  const sock_fprog program{
      .len = static_cast<unsigned short>(filter.size()),
      .filter = const_cast<sock_filter*>(filter.data())};  // NOLINT(*-const-cast): an old interface
  return check("seccomp", errno_result(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)));
}

}  // namespace belljar::egress
