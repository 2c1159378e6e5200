// Policies for the tests: the container profile's source, and random ones.
#pragma once

#include <linux/seccomp.h>

#include <random>
#include <string>

#include "seccomp/policy.h"

namespace belljar {

// profiles/container.policy, parsed. Ends the test program if it can't be read.
const Policy& container_policy();

// The three fallbacks and a name; rows are to be added.
inline constexpr std::string_view kPolicyHead =
    "policy test\ndefault errno ENOSYS: d\nunknown errno ENOSYS: u\nforeign errno ENOSYS: f\n";

// A valid policy in text form, with up to `rows_max` rows for each of about half the syscalls.
std::string random_policy_text(std::mt19937_64& random, int rows_max);

// A call that is likely to be near a row's limits: known numbers and their neighbours, x32 and foreign ones; arguments
// near the row's values, with and without rubbish in the bits that don't count.
seccomp_data random_call(const Policy& policy, std::mt19937_64& random);

}  // namespace belljar
