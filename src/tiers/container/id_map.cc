#include "tiers/container/id_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "host/process.h"
#include "spec/errors.h"

namespace belljar::container {
namespace {

Result<void> write_map(int proc_folder_fd, const char* name, const std::string& text) {
  const auto written = write_control_file(proc_folder_fd, name, text);
  if (written) return {};
  return fail(ErrorCode::host_unsupported,
              fmt::format("can't write the {} of a new user namespace: {}", name, errno_text(written.error().value)));
}

}  // namespace

Result<Fd> open_proc_folder(pid_t pid) {
  auto folder = open_at(AT_FDCWD, fmt::format("/proc/{}", pid).c_str(), O_PATH | O_DIRECTORY);
  if (folder) return std::move(*folder);
  return fail(ErrorCode::host_unsupported,
              fmt::format("can't open /proc/{}: {}; is /proc mounted?", pid, errno_text(folder.error().value)));
}

Result<void> map_id_range(int proc_folder_fd, unsigned base) {
  const std::string map = fmt::format("0 {} {}", base, kIdRangeSize);
  TRY_VOID(write_map(proc_folder_fd, "uid_map", map));
  return write_map(proc_folder_fd, "gid_map", map);
}

Result<void> map_own_ids(int proc_folder_fd, const ProgramIds& ids) {
  TRY_VOID(write_map(proc_folder_fd, "setgroups", "deny"));
  TRY_VOID(write_map(proc_folder_fd, "uid_map", fmt::format("{} {} 1", ids.uid, ::geteuid())));
  return write_map(proc_folder_fd, "gid_map", fmt::format("{} {} 1", ids.gid, ::getegid()));
}

Result<Fd> make_owner_map(const ProgramIds& owner, unsigned base, const ProgramIds& ids) {
  const pid_t parent = ::getpid();
  auto clone = host::clone_process(CLONE_NEWUSER, -1);
  if (!clone) {
    return fail(ErrorCode::host_unsupported,
                fmt::format("can't make a user namespace: {}", errno_text(clone.error().value)));
  }
  if (clone->side == host::Side::child) {
    // Until killed: the namespace needs a process only while its map is written. Without the signal it would outlive a
    // supervisor that is killed meanwhile.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    while (::getppid() == parent) ::pause();
    ::_exit(0);
  }
  const Fd folder = TRY(open_proc_folder(clone->process.pid()));
  TRY_VOID(write_map(folder.get(), "uid_map", fmt::format("{} {} 1", owner.uid, base + ids.uid)));
  TRY_VOID(write_map(folder.get(), "gid_map", fmt::format("{} {} 1", owner.gid, base + ids.gid)));
  auto userns = open_at(folder.get(), "ns/user", O_RDONLY);
  if (userns) return std::move(*userns);
  return fail(ErrorCode::host_unsupported,
              fmt::format("can't open a user namespace: {}", errno_text(userns.error().value)));
}

}  // namespace belljar::container
