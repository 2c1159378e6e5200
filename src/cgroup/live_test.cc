// The real thing, on whichever version this host has: real limits, real processes, real storms.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "cgroup/cgroup.h"
#include "cgroup/group_folder.h"
#include "cgroup/groups.h"
#include "cgroup/site.h"
#include "spec/errors.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Version = CgroupSupport::Version;

// Numbers that a child leaves for the test.
struct Notes {
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> failed_errno{0};
};

Notes* shared_notes() {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (page) Notes;
}

// Runs `body` in a new process inside the groups, as a tier would start it, and returns once it is inside. -1 when it
// could not be started.
pid_t start_inside(const CgroupDir& groups, const std::function<void()>& body) {
  Pipe inside = *make_pipe();
  pid_t pid = -1;
  if (groups.clone_into_fd() >= 0) {
    clone_args args{};
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = SIGCHLD;
    args.cgroup = static_cast<std::uint64_t>(groups.clone_into_fd());
    pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
  } else {
    pid = ::fork();
  }
  if (pid != 0) {
    inside.write.reset();
    char end;
    (void)!::read(inside.read.get(), &end, 1);
    return pid;
  }
  for (const int fd : groups.attach_fds()) {
    if (::write(fd, "0", 1) != 1) ::_exit(99);
  }
  (void)!::write(inside.write.get(), "x", 1);
  body();
  ::_exit(0);
}

int wait_for(pid_t pid) {
  int status = -1;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void touch(std::size_t bytes) {
  char* memory = static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
}

void spin_for(milliseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

bool dead(const std::string& /*name*/) {
  return false;
}
bool alive(const std::string& /*name*/) {
  return true;
}

class LiveTest : public testing::Test {
 protected:
  void SetUp() override {
    const CgroupSupport& support = cgroup_support();
    if (support.version == Version::none || !support.why_not.empty()) {
      GTEST_SKIP() << "NOT COVERED: real control groups, as this host or user has none: " << support.why_not;
    }
  }
  void TearDown() override {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    ::munmap(notes_, 4096);
  }

  static std::string fresh_name() {
    static int number = 0;
    return fmt::format("test-{}-{}", ::getpid(), ++number);
  }

  static std::unique_ptr<CgroupDir> create(const Limits& limits, const std::string& name = fresh_name()) {
    auto made = create_cgroups(name, limits);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  static bool any_exists(const std::vector<std::string>& folders) {
    return std::any_of(folders.begin(), folders.end(), [](const auto& folder) { return fs::exists(folder); });
  }

  static bool any_process(const std::vector<std::string>& folders) {
    return std::any_of(folders.begin(), folders.end(), [](const auto& f) { return !group_processes(f).empty(); });
  }

  // A body that never ends, and forks all the time from every process there is.
  static void storm() {
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGCHLD, SIG_IGN);
    while (true) {
      if (::fork() == 0) ::setsid();
    }
  }

  Notes* notes_ = shared_notes();
};

TEST_F(LiveTest, MemoryLimitKillsAHog) {
  Limits limits;
  limits.memory.value = 32 * kMiB;
  const auto groups = create(limits);
  const int status = wait_for(start_inside(*groups, [] { touch(256 * kMiB); }));
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  const auto usage = groups->usage();
  ASSERT_TRUE(usage.has_value());
  EXPECT_GE(usage->oom_kills, 1U);
  EXPECT_LE(usage->memory_peak_bytes, 33 * kMiB);
  EXPECT_GE(usage->memory_peak_bytes, 31 * kMiB);
  EXPECT_TRUE(groups->remove());
}

TEST_F(LiveTest, MemoryUnderTheLimitIsLeftAlone) {
  Limits limits;
  limits.memory.value = 128 * kMiB;
  const auto groups = create(limits);
  const int status = wait_for(start_inside(*groups, [] { touch(64 * kMiB); }));
  EXPECT_EQ(status, 0);
  const auto usage = groups->usage();
  ASSERT_TRUE(usage.has_value());
  EXPECT_EQ(usage->oom_kills, 0U);
  EXPECT_GE(usage->memory_peak_bytes, 64 * kMiB);
  EXPECT_LE(usage->memory_peak_bytes, 72 * kMiB);
}

// A program that reads files fills the limit with page cache, which is given up when memory is wanted.
TEST_F(LiveTest, PageCacheIsNoPeak) {
  Limits limits;
  limits.memory.value = 64 * kMiB;
  char name[] = "/var/tmp/belljar-live-XXXXXX";
  const Fd file(::mkstemp(name));
  ASSERT_TRUE(file.is_open());
  const auto groups = create(limits);
  const int status = wait_for(start_inside(*groups, [&] {
    static char block[1 << 20];
    for (int i = 0; i < 200; ++i) {
      if (::write(file.get(), block, sizeof block) != sizeof block) ::_exit(1);
    }
  }));
  EXPECT_EQ(status, 0);
  const auto usage = groups->usage();
  ::unlink(name);
  ASSERT_TRUE(usage.has_value());
  EXPECT_TRUE(usage->memory_peak_is_sampled);
  EXPECT_LE(usage->memory_peak_bytes, 16 * kMiB);
}

TEST_F(LiveTest, EachLookCountsWhatWasTakenSinceTheLast) {
  Limits limits;
  const auto groups = create(limits);
  EXPECT_EQ(wait_for(start_inside(*groups, [] { touch(48 * kMiB); })), 0);
  (void)groups->observe();
  EXPECT_EQ(wait_for(start_inside(*groups, [] { touch(16 * kMiB); })), 0);
  const auto usage = groups->usage();
  ASSERT_TRUE(usage.has_value());
  EXPECT_GE(usage->memory_peak_bytes, 48 * kMiB);
  EXPECT_LE(usage->memory_peak_bytes, 56 * kMiB);
}

// Kernel memory that a program can ask for must count, or the limit is none. Each body takes memory of its kind until
// refused or killed, and notes how much it got.
void fill_pipes(Notes* notes) {
  static char block[64 * 1024];
  for (int i = 0; i < 200; ++i) {
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK) != 0) return;
    (void)::fcntl(ends[1], F_SETPIPE_SZ, 1024 * 1024);
    ssize_t written;
    while ((written = ::write(ends[1], block, sizeof block)) > 0) notes->count += static_cast<std::uint64_t>(written);
    if (errno != EAGAIN) return;
  }
}

void fill_unix_sockets(Notes* notes) {
  static char block[32 * 1024];
  for (int i = 0; i < 400; ++i) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) return;
    ssize_t written;
    while ((written = ::write(ends[1], block, sizeof block)) > 0) notes->count += static_cast<std::uint64_t>(written);
    if (errno != EAGAIN) return;
  }
}

void fill_tmpfs(Notes* notes) {
  static char block[64 * 1024];
  const int file = ::memfd_create("fill", 0);
  ssize_t written;
  while (notes->count < 100 * kMiB && (written = ::write(file, block, sizeof block)) > 0) {
    notes->count += static_cast<std::uint64_t>(written);
  }
}

// One page of page tables for each touched 2 MiB.
void fill_page_tables(Notes* notes) {
  constexpr std::size_t kStep = 2 * kMiB;
  constexpr std::size_t kSpan = 1024 * kGiB / 8;
  char* span =
      static_cast<char*>(::mmap(nullptr, kSpan, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (span == MAP_FAILED) return;
  (void)::madvise(span, kSpan, MADV_NOHUGEPAGE);
  volatile char sum = 0;
  for (std::size_t at = 0; at < kSpan; at += kStep) {
    sum = static_cast<char>(sum + span[at]);  // reads map the shared zero page: only the tables cost memory
    notes->count += 4096;
  }
}

// Connections to oneself, each filled until the kernel takes no more.
void fill_tcp_sockets(Notes* notes) {
  static char block[64 * 1024];
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any_address = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, any_address, size) != 0 || ::listen(listener, 8) != 0 ||
      ::getsockname(listener, any_address, &size) != 0) {
    ::_exit(1);
  }
  for (int i = 0; i < 60; ++i) {
    const int sender = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(sender, any_address, size) != 0 || ::accept(listener, nullptr, nullptr) < 0) ::_exit(2);
    (void)::fcntl(sender, F_SETFL, O_NONBLOCK);
    ssize_t written;
    while ((written = ::write(sender, block, sizeof block)) > 0) notes->count += static_cast<std::uint64_t>(written);
  }
}

TEST_F(LiveTest, SocketBuffersCount) {
  Limits limits;
  limits.memory.value = 32 * kMiB;
  const auto groups = create(limits);
  const int status = wait_for(start_inside(*groups, [this] { fill_tcp_sockets(notes_); }));
  EXPECT_TRUE(status == 0 || WIFSIGNALED(status)) << status;
  EXPECT_GE(notes_->count, 2 * kMiB);
  EXPECT_LE(notes_->count, 36 * kMiB);  // some 220 MiB where they are not counted
}

TEST_F(LiveTest, KernelMemoryCounts) {
  constexpr std::pair<const char*, void (*)(Notes*)> kKinds[] = {{"pipes", fill_pipes},
                                                                 {"unix sockets", fill_unix_sockets},
                                                                 {"tmpfs", fill_tmpfs},
                                                                 {"page tables", fill_page_tables}};
  for (const auto& [kind, body] : kKinds) {
    SCOPED_TRACE(kind);
    Limits limits;
    limits.memory.value = 16 * kMiB;
    const auto groups = create(limits);
    notes_->count = 0;
    wait_for(start_inside(*groups, [&, fill = body] { fill(notes_); }));
    EXPECT_LE(notes_->count, 17 * kMiB);
    EXPECT_GE(notes_->count, 4 * kMiB);
    const auto usage = groups->usage();
    ASSERT_TRUE(usage.has_value());
    EXPECT_GE(usage->memory_peak_bytes, 15 * kMiB);
    EXPECT_LE(usage->memory_peak_bytes, 17 * kMiB);
  }
}

TEST_F(LiveTest, TaskLimitRefusesForks) {
  Limits limits;
  limits.tasks.value = 5;
  const auto groups = create(limits);
  const int status = wait_for(start_inside(*groups, [this] {
    for (int i = 0; i < 20; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::pause();
        ::_exit(0);
      }
      if (child < 0) {
        notes_->failed_errno = static_cast<std::uint64_t>(errno);
        break;
      }
      ++notes_->count;
    }
  }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(notes_->count, 4U);
  EXPECT_EQ(notes_->failed_errno, static_cast<std::uint64_t>(EAGAIN));
  const auto usage = groups->usage();
  ASSERT_TRUE(usage.has_value());
  EXPECT_EQ(usage->task_refusals, 1U);
  EXPECT_LE(usage->tasks_peak, 5U);
  EXPECT_GE(usage->tasks_peak, 4U);  // 4 where it is what usage() itself has seen
  groups->kill_all();
  EXPECT_FALSE(any_process(groups->folders()));
}

TEST_F(LiveTest, CpuQuotaHoldsOverThreads) {
  Limits limits;
  limits.cpus.value = 500;
  const auto groups = create(limits);
  const auto start = Clock::now();
  const int status = wait_for(start_inside(*groups, [] {
    std::vector<pid_t> spinners;
    for (int i = 0; i < 4; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        spin_for(milliseconds(1500));
        ::_exit(0);
      }
      spinners.push_back(child);
    }
    for (const pid_t child : spinners) wait_for(child);
  }));
  const auto wall = std::chrono::duration_cast<milliseconds>(Clock::now() - start).count();
  EXPECT_EQ(status, 0);
  const auto usage = groups->usage();
  ASSERT_TRUE(usage.has_value());
  const auto used = static_cast<double>(usage->cpu_user_ms + usage->cpu_system_ms);
  // One period's share may be spent in advance.
  EXPECT_LE(used, 0.5 * static_cast<double>(wall) + 60) << wall;
  EXPECT_GE(used, 0.1 * static_cast<double>(wall)) << wall;
}

TEST_F(LiveTest, CpuUseIsExact) {
  const auto groups = create(Limits());
  wait_for(start_inside(*groups, [this] {
    spin_for(milliseconds(200));
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    notes_->count = static_cast<std::uint64_t>(used.tv_sec * 1000 + used.tv_nsec / 1'000'000);
  }));
  const auto usage = groups->usage();
  ASSERT_TRUE(usage.has_value());
  const std::uint64_t counted_ms = usage->cpu_user_ms + usage->cpu_system_ms;
  EXPECT_GE(counted_ms + 2, notes_->count);
  EXPECT_LE(counted_ms, notes_->count + 40);  // the start and the end of the process, slow in an emulated machine
}

TEST_F(LiveTest, KillAllLeavesNoneOfAForkStorm) {
  for (int round = 0; round < 5; ++round) {
    Limits limits;
    limits.tasks.value = 300;
    const auto groups = create(limits);
    const pid_t first = start_inside(*groups, storm);
    std::this_thread::sleep_for(milliseconds(150));
    EXPECT_TRUE(any_process(groups->folders()));
    const auto refusals_before = groups->usage()->task_refusals;
    const auto start = Clock::now();
    groups->kill_all();
    EXPECT_LT(Clock::now() - start, milliseconds(1900));
    EXPECT_FALSE(any_process(groups->folders()));
    wait_for(first);
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_FALSE(any_process(groups->folders()));
    EXPECT_GE(groups->usage()->task_refusals, refusals_before);
    const auto folders = groups->folders();
    EXPECT_TRUE(groups->remove());
    EXPECT_FALSE(any_exists(folders));
  }
}

TEST_F(LiveTest, RefusalsCausedByKillingAreNotCounted) {
  const auto groups = create(Limits());
  const pid_t child = start_inside(*groups, [] { ::pause(); });
  groups->kill_all();
  wait_for(child);
  EXPECT_EQ(groups->usage()->task_refusals, 0U);
}

TEST_F(LiveTest, StoppedProcessesDieToo) {
  const auto groups = create(Limits());
  const pid_t child = start_inside(*groups, [] { ::raise(SIGSTOP); });
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  ASSERT_TRUE(WIFSTOPPED(status));
  groups->kill_all();
  EXPECT_TRUE(WIFSIGNALED(wait_for(child)));
}

TEST_F(LiveTest, DestructorKillsAndRemoves) {
  std::vector<std::string> folders;
  pid_t child = -1;
  {
    const auto groups = create(Limits());
    child = start_inside(*groups, [] { ::pause(); });
    folders = groups->folders();
    EXPECT_TRUE(any_exists(folders));
    EXPECT_FALSE(groups->remove());  // busy
  }
  EXPECT_FALSE(any_exists(folders));
  EXPECT_TRUE(WIFSIGNALED(wait_for(child)));
}

TEST_F(LiveTest, AWatcherCanCleanUpByFolders) {
  auto groups = create(Limits());
  const pid_t child = start_inside(*groups, storm);
  const auto folders = groups->folders();
  remove_cgroup_folders(folders);
  EXPECT_FALSE(any_exists(folders));
  EXPECT_TRUE(WIFSIGNALED(wait_for(child)));
  EXPECT_TRUE(groups->remove());   // nothing left to do
  remove_cgroup_folders(folders);  // nor here
}

TEST_F(LiveTest, UsageAfterRemovalIsAnError) {
  const auto groups = create(Limits());
  EXPECT_TRUE(groups->remove());
  EXPECT_FALSE(groups->usage().has_value());
}

TEST_F(LiveTest, SweepTakesTheDeadAndTheirProcesses) {
  const auto groups = create(Limits(), "test-sweep-me");
  const pid_t child = start_inside(*groups, [] { ::pause(); });
  const auto is_other = [](const std::string& name) { return name != "test-sweep-me"; };
  EXPECT_EQ(sweep_cgroups(is_other), 1U);
  EXPECT_FALSE(any_exists(groups->folders()));
  EXPECT_TRUE(WIFSIGNALED(wait_for(child)));
  EXPECT_EQ(sweep_cgroups(is_other), 0U);
}

TEST_F(LiveTest, SameNameTwiceIsRefusedAndHarmless) {
  const auto groups = create(Limits(), "test-twice");
  const auto second = create_cgroups("test-twice", Limits());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::start_failed);
  EXPECT_TRUE(any_exists(groups->folders()));
  EXPECT_EQ(wait_for(start_inside(*groups, [] {})), 0);
}

// Creators, and sweeps that take the common folder away whenever they find it empty.
TEST_F(LiveTest, TwentyAtOnceWithSweeps) {
  std::atomic<bool> stop = false;
  std::atomic<int> failures = 0;
  std::thread sweeper([&] {
    while (!stop) sweep_cgroups(alive);
  });
  std::vector<std::thread> creators;
  for (int i = 0; i < 20; ++i) {
    creators.emplace_back([&failures, i] {
      for (int round = 0; round < 10; ++round) {
        auto made = create_cgroups(fmt::format("test-at-once-{}-{}", i, round), Limits());
        if (!made) {
          ++failures;
          ADD_FAILURE() << made.error().message;
          continue;
        }
        const auto folders = (*made)->folders();
        if (wait_for(start_inside(**made, [] {})) != 0) ++failures;
        made->reset();
        if (any_exists(folders)) ++failures;
      }
    });
  }
  for (std::thread& creator : creators) creator.join();
  stop = true;
  sweeper.join();
  EXPECT_EQ(failures, 0);
}

// A group above with less than the sandbox asks for: on v1 the kernel refuses the higher quota, yet holds the lower
// one.
TEST_F(LiveTest, LowerQuotaAboveStillHolds) {
  CgroupSite site = find_site("/proc");
  std::vector<std::string> made;
  for (GroupBase& base : site.bases) {
    if (!base.controllers.has(Controller::cpu)) continue;
    if (site.support.version == Version::v2) break;
    base.parent += fmt::format("/belljar-test-{}", ::getpid());
    ASSERT_EQ(::mkdir(base.parent.c_str(), 0755), 0);
    made.push_back(base.parent);
    ASSERT_TRUE(write_control_file(AT_FDCWD, (base.parent + "/cpu.cfs_quota_us").c_str(), "20000"));
  }
  if (made.empty()) {
    GTEST_SKIP() << "NOT COVERED: a lower v1 quota above, as this host's cpu controller is on v2, which never refuses";
  }
  {
    auto groups = create_groups_at(site, fresh_name(), Limits());
    ASSERT_TRUE(groups.has_value()) << groups.error().message;
    const auto start = Clock::now();
    wait_for(start_inside(**groups, [] { spin_for(milliseconds(1000)); }));
    const auto wall = std::chrono::duration_cast<milliseconds>(Clock::now() - start).count();
    const auto usage = (*groups)->usage();
    ASSERT_TRUE(usage.has_value());
    EXPECT_LE(usage->cpu_user_ms + usage->cpu_system_ms, static_cast<std::uint64_t>(wall) / 5 + 30);
  }
  for (const std::string& folder : made) {
    EXPECT_NE(::access((folder + "/belljar").c_str(), F_OK), 0);  // gone with the last group in it
    EXPECT_EQ(::rmdir(folder.c_str()), 0);
  }
}

// A v2 hierarchy without any of our controllers, as hybrid hosts have, still starts, counts CPU, kills and removes: so
// that part of v2 is tested on those too.
TEST_F(LiveTest, V2KillsAndCountsWithoutControllers) {
  const auto layout = find_layout(*read_file_at(AT_FDCWD, "/proc/self/mountinfo", kMiB),
                                  *read_file_at(AT_FDCWD, "/proc/self/cgroup", kMiB));
  if (layout.v2_group.empty()) GTEST_SKIP() << "NOT COVERED: v2 without controllers, as no v2 hierarchy is mounted";
  CgroupSite site;
  site.support.version = Version::v2;
  const bool is_v2 = cgroup_support().version == Version::v2;
  site.bases.push_back({is_v2 ? find_site("/proc").bases.front().parent : layout.v2_mount, {}});
  auto made = create_groups_at(site, fresh_name(), Limits());
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const auto folders = (*made)->folders();
  ASSERT_EQ(folders.size(), 1U);
  EXPECT_GE((*made)->clone_into_fd(), 0);
  EXPECT_TRUE((*made)->attach_fds().empty());
  wait_for(start_inside(**made, [] { spin_for(milliseconds(100)); }));
  const auto usage = (*made)->usage();
  ASSERT_TRUE(usage.has_value());
  EXPECT_GE(usage->cpu_user_ms + usage->cpu_system_ms, 20U);
  EXPECT_LE(usage->cpu_user_ms + usage->cpu_system_ms, 150U);

  const pid_t first = start_inside(**made, [] {
    for (int i = 0; i < 20; ++i) {
      if (::fork() == 0) {
        ::setsid();
        ::pause();
      }
    }
    ::pause();
  });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE((*made)->remove());
  (*made)->kill_all();
  EXPECT_FALSE(any_process(folders));
  wait_for(first);
  made->reset();
  EXPECT_FALSE(any_exists(folders));
}

// Alone in a v2 group, as in a delegated scope: the process leaves it for a child, and the sandbox comes beside that.
TEST_F(LiveTest, LeavesADelegatedV2Group) {
  if (cgroup_support().version != Version::v2) {
    GTEST_SKIP() << "NOT COVERED: leaving a delegated v2 group, as this host's controllers are on v1";
  }
  const std::string scope = fmt::format("{}/belljar-test-{}", find_site("/proc").bases.front().parent, ::getpid());
  ASSERT_EQ(::mkdir(scope.c_str(), 0755), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!write_control_file(AT_FDCWD, (scope + "/cgroup.procs").c_str(), "0")) ::_exit(10);
    const CgroupSite site = find_site("/proc");
    if (site.parent_use != ParentUse::leave_first || site.bases.front().parent != scope) ::_exit(11);
    auto groups = create_groups_at(site, "one", Limits());
    if (!groups) ::_exit(12);
    if (wait_for(start_inside(**groups, [] { touch(4 * kMiB); })) != 0) ::_exit(13);
    if ((*groups)->usage()->memory_peak_bytes < 4 * kMiB) ::_exit(14);
    groups->reset();
    if (find_site("/proc").bases.front().parent != scope) ::_exit(15);  // found again from the child group
    ::_exit(sweep_site(site, dead) == 0 ? 0 : 16);
  }
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(remove_folder(scope + "/belljar-supervisor", milliseconds(500)), Removal::done);
  EXPECT_EQ(remove_folder(scope, milliseconds(500)), Removal::done);
}

TEST_F(LiveTest, CostOfAStart) {
  constexpr int kRounds = 200;
  std::vector<double> create_us;
  std::vector<double> remove_us;
  std::vector<double> find_us;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  };
  for (int i = 0; i < kRounds; ++i) {
    auto start = Clock::now();
    const CgroupSite site = find_site("/proc");
    find_us.push_back(since(start));
    start = Clock::now();
    auto groups = create_groups_at(site, fresh_name(), Limits());
    create_us.push_back(since(start));
    ASSERT_TRUE(groups.has_value());
    wait_for(start_inside(**groups, [] {}));
    start = Clock::now();
    groups->reset();
    remove_us.push_back(since(start));
  }
  for (const auto& [what, times] :
       {std::pair{"find the place", &find_us}, {"create", &create_us}, {"remove", &remove_us}}) {
    std::sort(times->begin(), times->end());
    std::printf("[   COST   ] %-14s median %4.0f us, p90 %4.0f us\n", what, (*times)[kRounds / 2],
                (*times)[kRounds * 9 / 10]);
    EXPECT_LT((*times)[kRounds / 2], 100'000);  // even in an emulated machine
  }
}

}  // namespace
}  // namespace belljar
