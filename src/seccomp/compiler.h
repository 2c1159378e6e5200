// Turns a policy into a classic BPF program for seccomp(2).
#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/result.h"
#include "seccomp/policy.h"

namespace belljar {

// The program checks the machine, then finds the number in a balanced tree of number ranges with the same answer, and
// looks at arguments last, so that the kernel sees at once which numbers are always allowed (its action bitmap).
// Fails with ErrorCode::bad_policy if the program would be longer than the kernel takes (BPF_MAXINSNS).
Result<std::vector<sock_filter>> compile_policy(const Policy& policy);

}  // namespace belljar
