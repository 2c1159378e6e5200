// What the commands do when the command line is right. The bodies stand in execute.cc, apart from parsing, so that
// parsing can be tested without making sandboxes.
#pragma once

#include "cli/calibrate_command.h"
#include "cli/changes_command.h"
#include "cli/image_command.h"
#include "cli/run_command.h"
#include "cli/runs_command.h"
#include "spec/sandbox_spec.h"

namespace belljar {

// Runs the sandbox, writes its output, the record and the line on stderr; returns the exit status of `belljar run`.
// The spec has passed validate().
int execute_run(const SandboxSpec& spec, const RunOptions& options);

// `belljar doctor`; returns its exit status.
int run_doctor(bool json);

// `belljar gc`; returns its exit status.
int run_gc();

// `belljar version`: the version, the commit and what this build holds. Returns its exit status.
int run_version(bool json);

// `belljar image ...`; returns its exit status.
int execute_image(const ImageRequest& request);

// `belljar changes ...`; returns its exit status.
int execute_changes(const ChangesRequest& request);

// `belljar runs` and `belljar show`; each returns its exit status.
int execute_runs(const RunsRequest& request);
int execute_show(const ShowRequest& request);

// `belljar calibrate`; returns its exit status.
int execute_calibrate(const CalibrateRequest& request);

}  // namespace belljar
