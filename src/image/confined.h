// A child process for work on bytes that nobody has checked: it can open nothing but one folder, has no network, no
// capabilities beyond the files of that folder, a short list of system calls (seccomp/profiles/unpack.policy), and
// limits on memory, time and the size of files. Should hostile bytes take the process over, that folder is all they can
// change.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "host/process.h"

namespace belljar {

enum class FolderAccess { read_only, read_write };

// What the work has to do with, in the child.
struct ConfinedPlaces {
  int folder_fd = -1;  // ConfinedWork::folder
  int source_fd = -1;  // ConfinedWork::source_folder
};

struct ConfinedWork {
  std::string folder;  // absolute path; all that the child can open by name, as "/"
  FolderAccess access = FolderAccess::read_only;
  std::string source_folder;         // absolute path of a folder that the child sees too, read-only; or empty
  int input_fd = -1;                 // a descriptor that stays open in the child
  std::uint64_t file_bytes_max = 0;  // of one file that it writes
  std::uint64_t cpu_seconds_max = 0;

  // Runs in the child. What it returns is the report.
  std::function<std::string(const ConfinedPlaces& places)> run;
};

using Deadline = std::chrono::steady_clock::time_point;

inline constexpr std::size_t kReportBytesMax = std::size_t{4} << 20;

// True under the host's root, whose images keep their users and groups; ordinary users' files all belong to the user.
bool keeps_image_ids();

class ConfinedProcess {
 public:
  // Starts the work. The calling process must have one thread only, since the child goes on in a copy of it. Errors:
  // host_unsupported, no_resources.
  static Result<ConfinedProcess> start(const ConfinedWork& work);

  // Waits for the end and returns the report, which is to be trusted as little as the bytes. Errors: bad_image, when
  // the child crashed, used up a limit or was still running at the deadline (it is killed then); host_unsupported.
  Result<std::string> finish(Deadline deadline);

 private:
  ConfinedProcess(host::Process process, Fd go, Fd report)
      : process_(std::move(process)), go_(std::move(go)), report_(std::move(report)) {}
  Result<std::string> read_report(Deadline deadline);

  host::Process process_;
  Fd go_;  // closed when this process ends, which the child looks for
  Fd report_;
};

// The error for work that was not done by its deadline.
std::unexpected<Error> took_too_long();

// Milliseconds until the deadline, for poll(2); 0 when it has passed.
int milliseconds_until(Deadline deadline);

}  // namespace belljar
