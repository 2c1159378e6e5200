// `belljar run` and `belljar policy`: from arguments to a checked SandboxSpec.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/outcome.h"
#include "spec/policy.h"
#include "spec/sandbox_spec.h"

namespace belljar {

struct RunOptions {
  bool json = false;             // capture the streams and write the record to stdout
  std::optional<int> status_fd;  // write the record, without the streams, to this descriptor
  std::string profile;           // remember the run under this name; empty: don't
  bool keep = false;             // remember the program's text and output too
  std::string trust;             // with --isolation auto: untrusted, reviewed or own; empty: not said
  bool explain = false;          // say which tier it chose, and why
  std::string limits_of;         // take limits that nobody named from the runs of this profile; empty: don't
};

using RunExecutor = std::function<int(const SandboxSpec&, const RunOptions&)>;

// `arguments` are those after "run". Returns the exit status. Whatever is wrong with the arguments becomes one line on
// stderr, and the record where one was asked for.
int run_command(std::span<char* const> arguments, const RunExecutor& execute);

// `arguments` are those after "policy".
int policy_command(std::span<char* const> arguments);

std::string run_help();
std::string policy_help();

// Writes one line of Belljar's own to stderr. Names and paths in it may be anyone's: what a terminal would act on is
// made visible.
void say(std::string_view line);

// Writes what a command has to say to stdout, where a lost part is reported on stderr. Returns the exit status.
int print(std::string_view text);

// Reports an error of a command that runs nothing: a line on stderr, and with `json` an object on stdout. Returns the
// exit status.
int report_error(const Error& error, bool json);

// Writes the record where `options` want it. A record that can't be written is reported on stderr: false.
bool write_record(const Outcome& outcome, const RunOptions& options);

// The record of a run that was refused, or failed by a fault of Belljar's own.
Outcome refused_outcome(const Error& error, const SandboxSpec& spec);

// Reports an error from before the program ran: the line on stderr, and the record. Returns the exit status. Without
// `spec`: what was asked for is not known, as it could not be read.
int report_refusal(const Error& error, const RunOptions& options, const SandboxSpec* spec = nullptr);

}  // namespace belljar
