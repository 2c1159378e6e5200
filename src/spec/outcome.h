// Outcome: the result record of one execution, the same for every tier (docs/result-record.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/limits.h"

namespace belljar {

// STATUS(name, "meaning"): how a run ended. `name` stands in the record.
#define BELLJAR_STATUSES(STATUS)                                            \
  STATUS(ok, "the program exited with 0")                                   \
  STATUS(error, "the program exited with another status")                   \
  STATUS(timeout, "killed at the wall clock limit")                         \
  STATUS(cpu, "killed at the processor time limit")                         \
  STATUS(memory, "killed at the memory limit")                              \
  STATUS(pids, "failed after new processes were refused at the task limit") \
  STATUS(disk, "failed with the writable space full, or a file too large")  \
  STATUS(output, "killed at the output limit")                              \
  STATUS(signal, "killed by a signal of its own or its neighbours' making") \
  STATUS(cancelled, "stopped by the caller")                                \
  STATUS(denied, "refused by Belljar before the program ran")               \
  STATUS(tampered, "the sandbox's user-space kernel came to harm")          \
  STATUS(internal, "Belljar failed")

enum class RunStatus {
#define STATUS(name, meaning) name,
  BELLJAR_STATUSES(STATUS)
#undef STATUS
};

// One captured stream. `bytes` holds the first bytes up to the limit, cut before a UTF-8 character that would not fit.
struct CapturedStream {
  std::string bytes;
  std::uint64_t bytes_total = 0;
  bool truncated = false;
};

struct Usage {
  std::uint64_t cpu_user_ms = 0;
  std::uint64_t cpu_system_ms = 0;
  // How long it was kept from running by the processor limit; nothing where no control group tells.
  std::optional<std::uint64_t> cpu_throttled_ms;
  std::uint64_t memory_peak_bytes = 0;  // anonymous and shared memory, swap, kernel memory; not the page cache
  // The peak is made from looks some milliseconds apart: there was page cache to tell apart, or no cgroup.
  bool memory_peak_is_sampled = false;
  std::uint64_t oom_kills = 0;  // processes killed at the memory limit, also when the program went on
  std::uint64_t processes_peak = 0;
  // By read(2), write(2) and their family, of all processes: files, pipes and terminals; not through mappings. Nothing
  // where the sandbox was killed and its processes' counters can't be read.
  std::optional<std::uint64_t> read_bytes;
  std::optional<std::uint64_t> written_bytes;
  std::uint64_t disk_written_bytes = 0;   // held in the writable space at the end
  std::uint64_t disk_written_inodes = 0;  // files and folders there
  std::uint64_t disk_peak_bytes = 0;      // the most that any look has seen there
  std::uint64_t disk_peak_inodes = 0;
  std::uint64_t net_sent_bytes = 0;        // to hosts that the allowlist names
  std::uint64_t net_received_bytes = 0;    // from them
  std::optional<std::uint64_t> fuel_used;  // where the tier counts it
  std::uint64_t start_us = 0;              // from the call to the execution of the program
};

// Something the program asked for and did not get.
struct Denial {
  std::string kind;    // "network", "tasks", "memory"
  std::string target;  // what was asked for
  std::string rule;    // what refused it
  std::string hint;    // the flag that would allow it, or why none does
  std::uint64_t count = 1;
};

// A host that the program was allowed to reach, and did.
struct NetworkUse {
  std::string target;  // "example.org:443"
  std::string rule;    // the rule that allowed it
  std::uint64_t count = 1;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

// A wall or limit that holds, but less than in full.
struct WeakerWall {
  std::string name;
  std::string why;
};

struct Isolation {
  std::string tier;  // empty: it was refused before one was chosen
  std::vector<std::string> enforced;
  std::vector<WeakerWall> weaker;
  std::vector<WeakerWall> missing;
};

enum class FileChange { added, modified, deleted };

// A file of the sandbox's that the caller got, or a changed file of the workspace.
struct FileRecord {
  std::string path;      // inside
  std::string saved_as;  // on the host, beginning as the caller wrote the folder; empty for a change that is kept
  std::uint64_t size = 0;
  std::string sha256;  // 64 hexadecimal digits; empty where the file was deleted
  FileChange change = FileChange::added;
};

// Something that was to be collected and was not.
struct SkippedFile {
  std::string path;  // inside
  std::string reason;
};

struct Outcome {
  RunStatus status = RunStatus::internal;
  std::optional<int> exit_code;  // set when the program exited
  std::optional<int> signal;     // set when the program was killed by a signal
  std::string reason;            // one line for people; empty for ok and error
  std::optional<Error> error;    // set for denied and internal
  CapturedStream standard_output;
  CapturedStream standard_error;
  std::uint64_t duration_ms = 0;
  Usage usage;
  Limits limits;
  bool has_limits = true;  // false: it was refused before it was known what they are
  std::vector<Denial> denials;
  std::vector<NetworkUse> network;
  std::vector<std::string> warnings;  // limits that the run came close to
  std::vector<FileRecord> files;
  std::vector<SkippedFile> files_skipped;
  bool files_truncated = false;  // a file's content was left behind: a limit, a file in the way, a full disk
  std::string changes_id;        // what `belljar changes` calls the workspace's changes; empty: there are none
  Isolation isolation;
};

std::string_view status_name(RunStatus status);
std::optional<RunStatus> find_status(std::string_view name);

// The exit status of `belljar run`: the program's own, 124, 125, 126, 127 or 128+n.
int exit_status(const Outcome& outcome);

enum class StreamContent {
  included,
  omitted,
  omitted_with_files,  // nor the collected files, whose names are the program's too
  omitted_with_words,  // nor the files, nor what messages quote of the program
};

// The record as one line of JSON, without a newline. Streams are text (invalid UTF-8 shown as U+FFFD) and, where that
// lost something, base64 beside it (stdout_base64, stderr_base64).
std::string outcome_to_json(const Outcome& outcome, StreamContent streams);

}  // namespace belljar
