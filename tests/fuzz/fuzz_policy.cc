// Any text as a policy file: reading it must hold, and what it takes must be shown as a policy file that means the
// same.
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "spec/policy.h"

namespace {

const char* no_variable(const char*) {
  return "x";
}

void check_round_trip(const belljar::RunPolicy& policy) {
  const auto shown = belljar::policy_to_toml(policy);
  if (!shown || !belljar::is_utf8(*shown)) std::abort();
  belljar::RunPolicy again;
  if (!belljar::apply_policy_text(again, *shown, "shown")) std::abort();
  const auto shown_again = belljar::policy_to_toml(again);
  if (!shown_again || *shown_again != *shown) std::abort();
  auto spec = policy.resolve(no_variable);
  const auto spec_again = again.resolve(no_variable);
  if (!spec || !spec_again || *spec != *spec_again) std::abort();
  spec->command = {"true"};
  if (!belljar::validate(*spec)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  belljar::RunPolicy policy;
  const auto applied = belljar::apply_policy_text(policy, text, "fuzz");
  if (applied) {
    check_round_trip(policy);
  } else if (applied.error().message != belljar::one_line(applied.error().message, SIZE_MAX)) {
    std::abort();  // an error is one line that a terminal shows as it is
  }
  // The same bytes as values of flags.
  belljar::RunPolicy flags;
  (void)flags.add_mount_text(text, "--mount");
  (void)flags.add_collect_text(text, "--collect");
  (void)flags.add_environment_text(text, "-e");
  for (const belljar::LimitRow& row : belljar::limit_rows()) {
    if (const auto value = belljar::parse_limit(row, text, "flag")) {
      const auto again = belljar::parse_limit(row, belljar::format_limit(row.unit, *value), "flag");
      if (!again || *again != *value) std::abort();
    }
  }
  return 0;
}
