// What filters answer, computed here instead of in the kernel.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <optional>
#include <span>

namespace belljar {

// Runs a filter on a call. The answer is a SECCOMP_RET_* value. nullopt: the kernel would not have taken the program
// (a jump or a load out of bounds, no return at the end), or it has an instruction that filters don't need.
std::optional<std::uint32_t> evaluate_filter(std::span<const sock_filter> program, const seccomp_data& call);

// The answer that the kernel can know from machine and number alone: where it is SECCOMP_RET_ALLOW, the kernel's action
// bitmap lets the call pass without running the filter. nullopt: an argument decides.
std::optional<std::uint32_t> constant_answer(std::span<const sock_filter> program, std::uint32_t audit_arch,
                                             std::uint32_t number);

}  // namespace belljar
