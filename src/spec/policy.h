// RunPolicy: what a run is allowed, as it is written in a policy file (TOML) and on the command line. Layers are
// applied one over the other (files first, then flags); a later layer wins. docs/generated/policy.md is made from
// policy_keys().
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/sandbox_spec.h"

namespace belljar {

// A variable for the sandbox. Without a value, the caller's own is taken when the policy is resolved: so a policy can
// be shown and stored without the secrets it passes on.
struct EnvironmentRequest {
  std::string name;
  std::optional<std::string> value;
  std::string where;  // who asked, for the error when the caller has no such variable
};

class RunPolicy {
 public:
  // Starts a layer: what is added from now on replaces what earlier layers say of the same thing, and may not
  // contradict itself.
  void begin_layer();

  // Each checks its value. `where` is the flag or file, line and key that it comes from. Errors: bad_value.
  Result<void> set_limit(const LimitRow& row, std::string_view text, std::string_view where);
  Result<void> set_tier(std::string_view name, std::string_view where);
  Result<void> set_image(std::string_view reference, std::string_view where);  // a name, or a path
  Result<void> set_workdir(std::string_view path, std::string_view where);
  Result<void> set_venv(std::string_view path, std::string_view where);
  Result<void> set_workspace(std::string_view path, std::string_view where);
  Result<void> set_stdin(std::string_view word, std::string_view where);            // inherit, none
  Result<void> set_on_output_limit(std::string_view word, std::string_view where);  // truncate, kill
  Result<void> add_hide(std::string_view path, std::string_view where);
  Result<void> add_require(std::string_view name, std::string_view where);        // a wall, a limit, or "all"
  Result<void> add_accept_weaker(std::string_view name, std::string_view where);  // a limit
  Result<void> add_environment(EnvironmentRequest request);
  Result<void> set_collect_existing(std::string_view word, std::string_view where);  // keep, replace
  Result<void> add_mount(MountSpec mount, std::string_view where);
  Result<void> add_allow(EgressRule rule, std::string_view where);
  Result<void> add_secret(SecretRule rule, std::string_view where);

  // The texts of -e (NAME or NAME=VALUE), --mount (SRC:DST[:ro|rw]), --collect (SRC:DST), --allow (HOST[:PORTS]) and
  // --secret (parse_secret_rule()).
  Result<void> add_environment_text(std::string_view text, std::string_view where);
  Result<void> add_mount_text(std::string_view text, std::string_view where);
  Result<void> add_collect_text(std::string_view text, std::string_view where);
  Result<void> add_allow_text(std::string_view text, std::string_view where);
  Result<void> add_secret_text(std::string_view text, std::string_view where);
  Result<void> add_pass_environment(std::string_view name, std::string_view where);

  // The spec as far as it is known: the environment is still empty, and nothing is set to run.
  const SandboxSpec& spec() const { return spec_; }
  const std::vector<EnvironmentRequest>& environment() const { return environment_; }

  // The spec with the environment, whose values come from `lookup` (getenv(3)) where the policy has none, and with
  // mounts ordered so that one never covers another that lies inside it. Error: usage, when the caller has no such
  // variable.
  using EnvironmentLookup = const char* (*)(const char* name);
  Result<SandboxSpec> resolve(EnvironmentLookup lookup) const;

 private:
  SandboxSpec spec_;
  std::vector<EnvironmentRequest> environment_;
  std::size_t earlier_mounts_ = 0;  // how many of the mounts belong to earlier layers
  std::size_t earlier_secrets_ = 0;
};

using PolicySetter = Result<void> (RunPolicy::*)(std::string_view text, std::string_view where);

enum class PolicyForm {
  text,   // a string
  list,   // an array of strings
  table,  // a table or an array of tables with rules of its own: limits, environment, mounts
};

// A key at the top of a policy file.
struct PolicyKey {
  std::string_view name;
  PolicyForm form;
  std::string_view what;
  PolicySetter set;  // for text, and for each element of a list; null for tables
};

// A flag of `belljar run` that belongs to the policy. The limits have flags too: LimitRow::flag.
struct PolicyFlag {
  std::string_view name;         // without dashes; a name of one letter is written with one dash
  std::string_view argument;     // what it takes, for help; empty: nothing
  std::string_view fixed_value;  // what a flag without an argument stands for
  std::string_view key;          // the policy key that says the same
  std::string_view what;
  PolicySetter set;
};

std::span<const PolicyKey> policy_keys();
std::span<const PolicyFlag> policy_flags();

// Applies the text of a policy file as one layer. `file_name` is for messages only ("policy.toml:3: ..."). The file is
// at most kPolicyBytesMax long; every unknown key, wrong type and doubled key is an error. Errors: bad_policy.
inline constexpr std::size_t kPolicyBytesMax = 256 * 1024;
Result<void> apply_policy_text(RunPolicy& policy, std::string_view text, std::string_view file_name);

// Reads and applies the file. Relative mount sources in it are relative to the caller's working folder, as on the
// command line. Errors: bad_policy.
Result<void> apply_policy_file(RunPolicy& policy, const std::string& path);

// The policy as TOML: applying the result to a fresh RunPolicy gives the same policy. Limits that nobody named are
// shown as comments, so that they stay defaults. Error: bad_value, when a path is not UTF-8 and so can't be written as
// TOML.
Result<std::string> policy_to_toml(const RunPolicy& policy);

// What to answer to a key or flag that asks for a network in other words than `allow`; empty for all other names.
std::string_view network_refusal(std::string_view name);

}  // namespace belljar
