#include "tiers/choose.h"

#include <fmt/format.h>

#include "spec/errors.h"
#include "tiers/tier.h"
#include "tiers/wasm/wasm.h"

namespace belljar {
namespace {

// What is asked for, as the table has it.
struct Question {
  Trust trust;
  bool traces_calls;
};

struct Rule {
  bool (*holds)(const Question& question);
  std::string_view tier;
  std::string_view why;
};

// The first one that holds, and whose tier is installed and refuses nothing of what is asked for, decides.
constexpr Rule kRules[] = {
    {[](const Question& q) { return q.traces_calls; }, "kernel", "--strace shows what a user-space kernel answers"},
    {[](const Question& q) { return q.trust == Trust::own; }, "container",
     "the program is your own, so the tier that keeps the most programs working is enough"},
    {[](const Question& q) { return q.trust == Trust::untrusted; }, "wasm",
     "nobody has read the program, and it asks for nothing that a module can't have: the smallest way to the host"},
    {[](const Question& q) { return q.trust == Trust::untrusted; }, "kernel",
     "the host kernel stays out of the program's reach, and the wasm tier can't run it as asked"},
    {[](const Question& q) { return q.trust == Trust::reviewed; }, "kernel",
     "somebody has read the program, and the host kernel stays out of its reach all the same"},
    {[](const Question&) { return true; }, "container", "no stronger tier of this installation can run it as asked"},
    {[](const Question&) { return true; }, "wasm", "no other tier does what the flags ask for"},
};

Result<void> check(std::string_view name, const SandboxSpec& spec) {
  const Tier* const tier = TRY(find_tier(name));
  TRY(tier->trial());  // it is installed
  return tier->check(spec);
}

std::unexpected<Error> nothing_fits(const SandboxSpec& spec) {
  std::string all;
  for (const Tier* const tier : tiers()) {
    const Result<void> checked = check(tier->name(), spec);
    if (!checked) all += fmt::format("; {}: {}", tier->name(), checked.error().message);
  }
  return fail(ErrorCode::usage, fmt::format("no tier of this installation can run it as asked{}", all));
}

}  // namespace

std::optional<Trust> find_trust(std::string_view word) {
  if (word == "untrusted") return Trust::untrusted;
  if (word == "reviewed") return Trust::reviewed;
  if (word == "own") return Trust::own;
  return std::nullopt;
}

Result<TierChoice> choose_tier(const SandboxSpec& spec, Trust trust) {
  if (!spec.script.empty() && is_wasm_module(spec.script)) {
    return TierChoice{"wasm", "a WebAssembly module runs in the wasm tier alone"};
  }
  const Question question{.trust = trust, .traces_calls = spec.traces_calls};
  for (const Rule& rule : kRules) {
    if (rule.holds(question) && check(rule.tier, spec))
      return TierChoice{std::string(rule.tier), std::string(rule.why)};
  }
  return nothing_fits(spec);
}

}  // namespace belljar
