// --isolation auto: which tier a program is run in, by a table (docs/choosing-a-tier.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/sandbox_spec.h"

namespace belljar {

// Whose the program is, as far as the caller vouches for it.
enum class Trust { untrusted, reviewed, own };

std::optional<Trust> find_trust(std::string_view word);

struct TierChoice {
  std::string tier;
  std::string why;  // one line
};

// Of the tiers that this installation has, and of them one that refuses nothing of what is asked for. Errors: usage,
// where each refuses something; the line says which tier what.
Result<TierChoice> choose_tier(const SandboxSpec& spec, Trust trust);

}  // namespace belljar
