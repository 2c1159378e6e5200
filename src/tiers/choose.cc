#include "tiers/choose.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/fd.h"
#include "tiers/tier.h"
#include "tiers/wasm/wasm.h"

namespace belljar {
namespace {

// What is asked for, as the table has it.
struct Question {
  Trust trust;
  bool traces_calls;
  bool is_module;
  bool runs_in_wasm;  // a script that an interpreter of the wasm tier can run, and no flag that the tier refuses
  bool has_kernel;
};

struct Rule {
  bool (*holds)(const Question& question);
  std::string_view tier;
  std::string_view why;
};

// The first one that holds decides.
constexpr Rule kRules[] = {
    {[](const Question& q) { return q.is_module; }, "wasm", "a WebAssembly module runs in the wasm tier alone"},
    {[](const Question& q) { return q.traces_calls && q.has_kernel; }, "kernel",
     "--strace shows what a user-space kernel answers"},
    {[](const Question& q) { return q.trust == Trust::own; }, "container",
     "the program is your own, so the tier that keeps the most programs working is enough"},
    {[](const Question& q) { return q.trust == Trust::untrusted && q.runs_in_wasm; }, "wasm",
     "nobody has read the program, and it asks for nothing that a module can't have: the smallest way to the host"},
    {[](const Question& q) { return q.has_kernel; }, "kernel",
     "the host kernel stays out of the program's reach, and it needs what the wasm tier does not have"},
    {[](const Question&) { return true; }, "container", "no stronger tier of this installation can run it"},
};

bool is_module(const std::string& path) {
  constexpr std::string_view kMagic("\0asm", 4);
  std::array<char, kMagic.size()> head{};
  const auto file =
      path.empty() ? std::unexpected(Errno{ENOENT}) : open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK);
  if (!file || ::pread(file->get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) return false;
  return std::string_view(head.data(), head.size()) == kMagic;
}

bool is_installed(std::string_view name) {
  const auto tier = find_tier(name);
  return tier && (*tier)->trial();
}

}  // namespace

std::optional<Trust> find_trust(std::string_view word) {
  if (word == "untrusted") return Trust::untrusted;
  if (word == "reviewed") return Trust::reviewed;
  if (word == "own") return Trust::own;
  return std::nullopt;
}

TierChoice choose_tier(const SandboxSpec& spec, Trust trust) {
  const Question question{.trust = trust,
                          .traces_calls = spec.traces_calls,
                          .is_module = is_module(spec.script),
                          .runs_in_wasm = is_installed("wasm") && wasm_runs_script(spec),
                          .has_kernel = is_installed("kernel")};
  const auto* const rule = std::ranges::find_if(kRules, [&](const Rule& each) { return each.holds(question); });
  return {std::string(rule->tier), std::string(rule->why)};
}

}  // namespace belljar
