// Belljar as a library: run one program in a sandbox and get its result record.
//
//   belljar::SandboxSpec spec;
//   spec.script = "analysis.py";
//   const belljar::Result<belljar::Outcome> outcome = belljar::run(spec);
//
// Thread-safe: several runs may go on at once in one process. The calling thread blocks until the run has ended; keep
// it alive that long, since its death ends the sandbox. A process with much memory pays for each start with a copy of
// its page tables; let a small process do the runs then.
#pragma once

#include <functional>

#include "base/result.h"
#include "spec/errors.h"
#include "spec/outcome.h"
#include "spec/sandbox_spec.h"

namespace belljar {

// Where the program's streams come from and go to while it runs. No descriptor is closed, and none reaches the sandbox:
// the program has pipes of its own.
struct RunIo {
  enum class Form {
    raw,            // byte for byte
    terminal_safe,  // control characters made visible, for a terminal
  };

  int stdin_fd = -1;   // read until its end; -1: the program's stdin is empty
  int stdout_fd = -1;  // written to as output comes, up to the output limit; -1: not passed on
  int stderr_fd = -1;
  Form stdout_form = Form::raw;
  Form stderr_form = Form::raw;
  bool capture = true;  // keep the output in the Outcome
  int cancel_fd = -1;   // once readable, the sandbox is killed: status "cancelled"
  int reader_fd =
      -1;  // a pipe or socket; once nobody reads from it any more, the same, for nobody waits for the Outcome
  int terminal_fd = -1;  // with SandboxSpec::terminal: the caller's terminal, whose size the program's takes ...
  int resize_fd = -1;    // ... whenever this is readable (a signalfd for SIGWINCH); what it holds is read and dropped
  std::function<void()> on_started;  // called while the sandbox sets itself up: what it does costs the program no time
};

// Runs `spec` to its end. The Outcome says how the program fared; the Error is Belljar's refusal or failure to start it
// (spec/errors.def). When this returns, nothing of the sandbox is left.
Result<Outcome> run(const SandboxSpec& spec, const RunIo& io = {});

}  // namespace belljar
