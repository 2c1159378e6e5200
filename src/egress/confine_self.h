// The walls around the egress process, which reads what hostile programs send: no files, no programs, no privilege, and
// the system calls of profiles/egress.policy. It keeps the network, which is its purpose.
#pragma once

#include "base/result.h"
#include "egress/report.h"

namespace belljar::egress {

// Errors: start_failed.
Result<void> confine_self(const EgressConfig& config);

}  // namespace belljar::egress
