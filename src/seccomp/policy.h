// A seccomp policy: which syscalls are let through, and why. The language is described in README.md.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "seccomp/syscall_table.h"

namespace belljar {

enum class ActionKind : std::uint8_t {
  allow,
  error,  // the syscall is not run and answers with an errno
  trap,   // SIGSYS, which the program may handle
  kill,   // the whole process dies by SIGSYS
  notify  // who listens answers (seccomp_unotify(2)); made from `error`, never written in a policy
};

struct Action {
  ActionKind kind = ActionKind::kill;
  std::uint16_t error = 0;  // for ActionKind::error: an errno

  bool operator==(const Action&) const = default;
  // What a filter returns for it: SECCOMP_RET_* (seccomp(2)).
  std::uint32_t seccomp_value() const;
  // As policies write it: "allow", "errno EPERM".
  std::string text() const;
};

enum class Membership : std::uint8_t { in, not_in };

// True where `argument & mask` is (not) one of `values`.
struct Condition {
  SyscallArgument argument;
  std::uint64_t mask;  // within the argument's width, never 0
  Membership membership;
  std::vector<std::uint64_t> values;  // never empty; within the mask
};

// One syscall of one row.
struct PolicyRow {
  const Syscall* syscall;  // in the static table
  Action action;
  std::vector<Condition> conditions;  // all must hold; none: always
  std::string condition_text;         // as written after "if"
  std::string reason;
};

// What happens to calls that no row names.
struct Fallback {
  Action action;
  std::string reason;
};

// The rows of a syscall are tried in the order written: the first whose conditions hold decides.
struct Policy {
  std::string name;
  const SyscallTable* table;    // static
  Fallback other_known;         // "default": in the table, and no row decided
  Fallback other_number;        // "unknown": numbers that the table lacks; on x86_64 the x32 numbers are among them
  Fallback other_entry;         // "foreign": the entries of another machine, such as int 0x80
  std::vector<PolicyRow> rows;  // in the order written
};

// Reads a policy. `file_name` is for messages. Fails with ErrorCode::bad_policy and one line: the place, what is wrong,
// and what would be right. Safe on any bytes; memory and time are bounded by limits on each part.
Result<Policy> parse_policy(std::string_view text, std::string_view file_name);

// What the rows say about a call, read directly: the measure for the compiler, in tests. A SECCOMP_RET_* value.
std::uint32_t evaluate_policy(const Policy& policy, const seccomp_data& call);

// The rows of each syscall of the policy's table, in the order of the table.
std::vector<std::vector<const PolicyRow*>> rows_by_syscall(const Policy& policy);

}  // namespace belljar
