#include "image/confined.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/utf8.h"
#include "host/descriptors.h"
#include "host/mount.h"
#include "host/privilege.h"
#include "seccomp/filter.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr unsigned kIds = 65536;  // kImageIdMax and below
constexpr rlim_t kMemoryBytes = rlim_t{1} << 30;
constexpr rlim_t kOpenFiles = 512;
constexpr std::uint64_t kCapabilities =
    (1ULL << CAP_CHOWN) | (1ULL << CAP_DAC_OVERRIDE) | (1ULL << CAP_FOWNER);  // over files whose ids are mapped
constexpr std::uint64_t kMountAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

// Exit statuses of the child; any other end is a crash.
constexpr int kSetupFailed = 2;
constexpr int kOutOfMemory = 3;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;  // sanitizers reserve terabytes of address space
#else
constexpr bool kIsSanitized = false;
#endif

// A folder, to be found again by path in another mount namespace.
struct FoundFolder {
  std::string path;  // empty: there is none
  dev_t device = 0;
  ino_t inode = 0;
};

Result<FoundFolder> look_at(const std::string& path) {
  if (path.empty()) return FoundFolder{};
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    return fail(ErrorCode::host_unsupported, fmt::format("{}: {}", path, errno_text(errno)));
  }
  return FoundFolder{.path = path, .device = status.st_dev, .inode = status.st_ino};
}

struct ChildPlan {
  const ConfinedWork* work;
  FoundFolder folder;
  FoundFolder source;
  int go_fd;
  int report_fd;
};

[[noreturn]] void give_up(const ChildPlan& plan, const char* step, int error) {
  (void)write_all(plan.report_fd, fmt::format("{}: {}", step, errno_text(error)));
  ::_exit(kSetupFailed);
}

// `result` is what a call of host/ returned: -errno, or what it made.
int check(const ChildPlan& plan, const char* step, int result) {
  if (result < 0) give_up(plan, step, -result);
  return result;
}

int errno_result(int result) {
  return result < 0 ? -errno : result;
}

// A detached copy of the mount at the folder, which must still be the one that was looked at.
// Mounts below it can be left out only where nothing is mounted: in a user namespace the kernel lets nobody see what
// they cover (mount_namespaces(7)).
Fd clone_folder(const ChildPlan& plan, const FoundFolder& folder, std::uint64_t attributes, host::Recursion recursion) {
  const auto opened = open_at(AT_FDCWD, folder.path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!opened) give_up(plan, folder.path.c_str(), opened.error().value);
  struct stat status{};
  check(plan, "fstat", errno_result(::fstat(opened->get(), &status)));
  if (status.st_dev != folder.device || status.st_ino != folder.inode) give_up(plan, folder.path.c_str(), ESTALE);
  const int copy = check(plan, "cloning a mount", host::clone_mount(opened->get(), "", recursion));
  check(plan, "setting mount attributes", host::set_mount_attributes(copy, attributes, -1, recursion));
  return Fd(copy);
}

ConfinedPlaces enter_folder(const ChildPlan& plan) {
  ConfinedPlaces places;
  if (!plan.source.path.empty()) {
    const std::uint64_t attributes = kMountAttributes | MOUNT_ATTR_RDONLY;
    places.source_fd = clone_folder(plan, plan.source, attributes, host::Recursion::yes).release();
  }
  const bool is_writable = plan.work->access == FolderAccess::read_write;
  const Fd folder =
      clone_folder(plan, plan.folder, kMountAttributes | (is_writable ? 0U : MOUNT_ATTR_RDONLY), host::Recursion::no);
  check(plan, "attaching a mount", host::attach_mount(folder.get(), AT_FDCWD, "/usr"));
  check(plan, "fchdir", errno_result(::fchdir(folder.get())));
  check(plan, "pivot_root", host::pivot_to_working_folder());
  check(plan, "chdir", errno_result(::chdir("/")));
  places.folder_fd = check(plan, "opening the folder", errno_result(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)));
  return places;
}

void set_limit(const ChildPlan& plan, decltype(RLIMIT_AS) limit, rlim_t value) {
  rlimit current{};
  check(plan, "getrlimit", errno_result(::getrlimit(limit, &current)));
  current.rlim_cur = current.rlim_max = std::min(value, current.rlim_max);
  check(plan, "setrlimit", errno_result(::setrlimit(limit, &current)));
}

void confine(const ChildPlan& plan) {
  set_limit(plan, RLIMIT_CORE, 1);  // 0 would still start a collector that core_pattern names (core(5))
  set_limit(plan, RLIMIT_NOFILE, kOpenFiles);
  set_limit(plan, RLIMIT_FSIZE, plan.work->file_bytes_max);
  set_limit(plan, RLIMIT_CPU, plan.work->cpu_seconds_max);
  if (!kIsSanitized) set_limit(plan, RLIMIT_AS, kMemoryBytes);
  check(plan, "giving up capabilities", host::forbid_new_capabilities());
  check(plan, "giving up capabilities", host::keep_capabilities(kCapabilities));
  check(plan, "no_new_privs", errno_result(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  const auto filter = unpack_profile().program;
  const sock_fprog program{
      .len = static_cast<unsigned short>(filter.size()),
      .filter = const_cast<sock_filter*>(filter.data())};  // NOLINT(*-const-cast): an old interface
  check(plan, "seccomp", errno_result(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)));
}

// The child's copy of the caller's secrets would be there for whoever takes it over, to be put into the image.
void forget_environment() {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    std::memset(*variable, 0, std::strlen(*variable));
  }
}

// Ends the process when the parent could not map its ids, or is gone: PR_SET_PDEATHSIG misses a death before the call.
void wait_for_parent(const ChildPlan& plan) {
  char go = 0;
  if (::read(plan.go_fd, &go, 1) != 1) ::_exit(kSetupFailed);
  pollfd parent{.fd = plan.go_fd, .events = 0, .revents = 0};
  if (::poll(&parent, 1, 0) != 0) ::_exit(kSetupFailed);
}

// Not sanitized: before a call that does not return, AddressSanitizer asks for the signal stack, and the filter kills
// for that.
[[noreturn, gnu::no_sanitize_address]] void child_main(const ChildPlan& plan) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::prctl(PR_SET_NAME, "belljar-unpack", 0, 0, 0);
  host::close_all_but({plan.go_fd, plan.report_fd, plan.work->input_fd});
  forget_environment();
  wait_for_parent(plan);
  const ConfinedPlaces places = enter_folder(plan);
  confine(plan);
  std::set_new_handler([] { ::_exit(kOutOfMemory); });
  const std::string report = plan.work->run(places);
  ::_exit(write_all(plan.report_fd, report) ? 0 : kSetupFailed);
}

Result<void> write_map(const std::string& folder, const char* name, const std::string& text) {
  const auto written = write_control_file(AT_FDCWD, (folder + name).c_str(), text);
  if (written) return {};
  return fail(ErrorCode::host_unsupported,
              fmt::format("can't write the {} of a new user namespace: {}", name, errno_text(written.error().value)));
}

Result<void> map_ids(pid_t pid) {
  const std::string folder = fmt::format("/proc/{}/", pid);
  if (keeps_image_ids()) {
    const std::string map = fmt::format("0 0 {}", kIds);
    TRY_VOID(write_map(folder, "uid_map", map));
    return write_map(folder, "gid_map", map);
  }
  TRY_VOID(write_map(folder, "setgroups", "deny"));
  TRY_VOID(write_map(folder, "uid_map", fmt::format("0 {} 1", ::geteuid())));
  return write_map(folder, "gid_map", fmt::format("0 {} 1", ::getegid()));
}

Error describe_clone_failure(int error) {
  if (error == EPERM) {
    return {ErrorCode::host_unsupported,
            "images are read in a user namespace, which this user may not make; belljar doctor says how to allow it"};
  }
  return {ErrorCode::no_resources, fmt::format("no process for reading the image: {}", errno_text(error))};
}

Error describe_crash(const host::ExitRecord& record) {
  if (record.code == CLD_EXITED && record.status == kOutOfMemory) {
    return {ErrorCode::bad_image, fmt::format("reading it takes more than {} MiB of memory", kMemoryBytes >> 20)};
  }
  if (record.code != CLD_EXITED && record.status == SIGXFSZ) {
    return {ErrorCode::bad_image, "a file in it is larger than allowed; belljar image load --max-size allows more"};
  }
  return {ErrorCode::bad_image,
          fmt::format("the confined process that read it came to a bad end ({} {}): it is damaged, or made to do harm",
                      record.code == CLD_EXITED ? "exit status" : "signal", record.status)};
}

}  // namespace

bool keeps_image_ids() {
  return host::is_root_of_host();
}

std::unexpected<Error> took_too_long() {
  return fail(ErrorCode::bad_image, "reading it takes too long; --timeout allows more");
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT32_MAX));
}

Result<ConfinedProcess> ConfinedProcess::start(const ConfinedWork& work) {
  auto go = make_pipe();
  auto report = make_pipe();
  if (!go || !report) return fail(ErrorCode::no_resources, "no pipes for reading the image");
  const ChildPlan plan{.work = &work,
                       .folder = TRY(look_at(work.folder)),
                       .source = TRY(look_at(work.source_folder)),
                       .go_fd = go->read.get(),
                       .report_fd = report->write.get()};
  auto clone = host::clone_process(kNamespaces, -1);
  if (!clone) return std::unexpected(describe_clone_failure(clone.error().value));
  if (clone->side == host::Side::child) child_main(plan);
  TRY_VOID(map_ids(clone->process.pid()));
  if (!write_all(go->write.get(), "g")) return fail(ErrorCode::no_resources, "the reading process ended early");
  return ConfinedProcess(std::move(clone->process), std::move(go->write), std::move(report->read));
}

Result<std::string> ConfinedProcess::read_report(Deadline deadline) {
  std::string report;
  char buffer[16384];
  while (true) {
    pollfd waiting{.fd = report_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return took_too_long();
    const ssize_t count = ::read(report_.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return report;
    report.append(buffer, static_cast<std::size_t>(count));
    if (report.size() > kReportBytesMax) {
      return fail(ErrorCode::bad_image, fmt::format("there is more than {} MiB to say of it", kReportBytesMax >> 20));
    }
  }
}

Result<std::string> ConfinedProcess::finish(Deadline deadline) {
  std::string report = TRY(read_report(deadline));  // an error drops the process, which is killed then
  const auto record = process_.reap();
  if (!record) return fail(ErrorCode::internal, "the process that read the image can't be waited for");
  if (record->code == CLD_EXITED && record->status == 0) return report;
  if (record->code == CLD_EXITED && record->status == kSetupFailed) {
    return fail(ErrorCode::host_unsupported,
                fmt::format("no confined process for reading the image: {}", one_line(report)));
  }
  if (record->status == SIGXCPU || record->status == SIGKILL) return took_too_long();
  return std::unexpected(describe_crash(*record));
}

}  // namespace belljar
