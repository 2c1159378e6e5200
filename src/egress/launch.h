// The supervisor's side of the egress process: starts it, and takes its report. The process is a program of its own,
// belljar-egress, so that what it needs costs other runs nothing, and so that it holds nothing of the supervisor's
// memory.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "egress/inspection_sources.h"
#include "egress/report.h"
#include "host/process.h"

namespace belljar::egress {

class EgressProcess {
 public:
  // Errors: host_unsupported where the program is not found, no_resources.
  static Result<EgressProcess> start(const EgressConfig& config, const InspectionSources& sources);

  // Where needs_inspection(): waits until it has read the secrets and has an authority. Errors: bad_value, which says
  // what is wrong with a secret; internal.
  Result<EgressReady> await_ready(std::size_t secrets);

  // Init's end of the link (link.h); to be closed here once init has it.
  Fd& link() { return link_; }

  // Readable (poll) when the process has ended.
  int ended_fd() const { return process_.pidfd(); }

  // Tells it to end, waits, and returns what it reports. Call once. Error: internal, when it ended in another way.
  Result<EgressReport> finish();

 private:
  EgressProcess(host::Process process, Fd link, Fd control)
      : process_(std::move(process)), link_(std::move(link)), control_(std::move(control)) {}

  enum class Until { line, end };
  std::string hear(Until what);

  host::Process process_;
  Fd link_;
  Fd control_;  // it ends when this is closed
};

// The descriptors of the process at its start.
inline constexpr int kLinkFd = 3;
inline constexpr int kConfigFd = 4;  // a pipe, up to its end
inline constexpr int kControlFd = 5;

}  // namespace belljar::egress
