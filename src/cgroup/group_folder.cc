#include "cgroup/group_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <thread>

// glibc 2.36 declares these without saying that they are C.
extern "C" {
#include <sys/pidfd.h>
}

namespace belljar {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kControlFileBytesMax = 4096;
constexpr std::size_t kProcessListBytesMax = 64 * 1024 * 1024;  // 4 million ids with their newlines
constexpr std::size_t kKillBatch = 64;                          // descriptors in use at once

// Sleeps from 50 us up to 2 ms, longer each time.
class Backoff {
 public:
  void wait() {
    std::this_thread::sleep_for(next_);
    next_ = std::min(next_ * 2, std::chrono::microseconds(2000));
  }

 private:
  std::chrono::microseconds next_{50};
};

// One pass over the group. A process id is only a number: between reading and killing, its process may be gone and the
// number given to a stranger. So each batch is opened first and the list read again: who is still on it is what was
// opened (pidfd_open(2)).
void kill_listed(const std::string& folder, const std::vector<pid_t>& listed) {
  for (std::size_t start = 0; start < listed.size(); start += kKillBatch) {
    struct Opened {
      pid_t pid;
      Fd pidfd;
    };
    std::vector<Opened> batch;
    for (std::size_t i = start; i < std::min(start + kKillBatch, listed.size()); ++i) {
      Fd pidfd(::pidfd_open(listed[i], 0));
      if (pidfd.is_open()) batch.push_back({listed[i], std::move(pidfd)});
    }
    const std::vector<pid_t> again = group_processes(folder);
    for (const Opened& process : batch) {
      if (std::binary_search(again.begin(), again.end(), process.pid)) {
        ::pidfd_send_signal(process.pidfd.get(), SIGKILL, nullptr, 0);
      }
    }
  }
}

// Asks the kernel to kill the whole group (v2 from Linux 5.14 on), or else to let it grow no more.
void stop_growth(const std::string& folder) {
  if (write_control_file(AT_FDCWD, (folder + "/cgroup.kill").c_str(), "1")) return;
  (void)write_control_file(AT_FDCWD, (folder + "/pids.max").c_str(), "0");
}

}  // namespace

std::uint64_t counter_in(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    std::uint64_t value = 0;
    std::from_chars(line.data() + key.size() + 1, line.data() + line.size(), value);
    return value;
  }
  return 0;
}

std::string read_control_text(const std::string& path) {
  const auto file = open_at(AT_FDCWD, path.c_str(), O_RDONLY);
  if (!file) return {};
  // The kernel hands out a small file whole in one read, so there is no loop to the end.
  char text[kControlFileBytesMax];
  const ssize_t size = ::read(file->get(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

std::uint64_t read_control_number(const std::string& path) {
  const std::string text = read_control_text(path);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<pid_t> group_processes(const std::string& folder) {
  const auto text = read_file_at(AT_FDCWD, (folder + "/cgroup.procs").c_str(), kProcessListBytesMax);
  std::vector<pid_t> pids;
  if (!text) return pids;
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at < end) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(at, end, pid);
    if (parsed.ec != std::errc()) break;
    if (pid > 0) pids.push_back(pid);  // 0 stands for a process outside our pid namespace
    at = parsed.ptr + 1;
  }
  std::sort(pids.begin(), pids.end());  // v2 lists them in no order
  return pids;
}

bool kill_in_folders(std::span<const std::string> folders, std::chrono::milliseconds time_max) {
  const Clock::time_point deadline = Clock::now() + time_max;
  for (const std::string& folder : folders) stop_growth(folder);
  Backoff backoff;
  while (true) {
    bool all_empty = true;
    for (const std::string& folder : folders) {
      const std::vector<pid_t> pids = group_processes(folder);
      if (pids.empty()) continue;
      all_empty = false;
      kill_listed(folder, pids);
    }
    if (all_empty) return true;
    if (Clock::now() >= deadline) return false;
    backoff.wait();
  }
}

Removal remove_folder(const std::string& folder, std::chrono::milliseconds time_max) {
  const Clock::time_point deadline = Clock::now() + time_max;
  Backoff backoff;
  while (::rmdir(folder.c_str()) != 0) {
    if (errno == ENOENT) return Removal::done;
    if (errno != EBUSY || Clock::now() >= deadline) return Removal::still_busy;
    backoff.wait();
  }
  return Removal::done;
}

}  // namespace belljar
