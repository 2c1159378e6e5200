// What is done to single cgroup folders, whatever their version: control files, killing, removing.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace belljar {

// The number after `key` in lines of "key number"; 0 where there is none.
std::uint64_t counter_in(std::string_view text, std::string_view key);

// A small control file's text or number; empty or 0 where it is missing or can't be read.
std::string read_control_text(const std::string& path);
std::uint64_t read_control_number(const std::string& path);

// The ids of the processes in the group (cgroup.procs), as seen from the caller's pid namespace. Empty when it is gone.
std::vector<pid_t> group_processes(const std::string& folder);

// Kills every process in the folders until none is left (true) or `time_max` has passed (false). First makes new forks
// impossible where the pids controller is at hand, so that no fork storm can outrun it.
bool kill_in_folders(std::span<const std::string> folders, std::chrono::milliseconds time_max);

enum class Removal { done, still_busy };

// rmdir(2) until done or `time_max` has passed: a group stays busy for a moment after its last process has gone.
Removal remove_folder(const std::string& folder, std::chrono::milliseconds time_max);

}  // namespace belljar
