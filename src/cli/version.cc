#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "cli/commit.h"
#include "cli/execute.h"
#include "spec/errors.h"
#include "tiers/tier.h"
#include "tiers/wasm/wasm.h"

namespace belljar {
namespace {

#if defined(BELLJAR_STATIC)
constexpr const char* kLinking = "static";
#else
constexpr const char* kLinking = "dynamic";
#endif

// What every build of this version has; what this host offers of it, doctor says.
constexpr const char* kBuiltIn[] = {"seccomp", "landlock", "cgroup-v1", "cgroup-v2", "egress",
                                    "secrets", "images",   "collect",   "workspace", "profiles"};

std::vector<std::string> features() {
  std::vector<std::string> names(std::begin(kBuiltIn), std::end(kBuiltIn));
  for (std::string& part : wasm_parts()) names.push_back(std::move(part));
  return names;
}

std::string version_text() {
  std::string text = fmt::format("belljar {} (commit {})\ntiers:", BELLJAR_VERSION, kCommit);
  for (const Tier* tier : tiers()) {
    text += fmt::format(" {}{}", tier->name(), tier->trial() ? "" : " (not installed)");
  }
  return text + fmt::format("\nfeatures: {}\nbuilt with: g++ {}.{}.{}, glibc {}.{}, {}\n", fmt::join(features(), " "),
                            __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__, __GLIBC__, __GLIBC_MINOR__, kLinking);
}

std::string version_json() {
  Json tiers_json = Json::array();
  for (const Tier* tier : tiers()) {
    const auto trial = tier->trial();
    tiers_json.push_back(
        {{"name", tier->name()}, {"installed", trial.has_value()}, {"why_not", trial ? "" : trial.error().message}});
  }
  const Json all = {{"version", BELLJAR_VERSION},
                    {"commit", kCommit},
                    {"tiers", std::move(tiers_json)},
                    {"features", features()},
                    {"compiler", fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)},
                    {"libc", fmt::format("glibc {}.{}", __GLIBC__, __GLIBC_MINOR__)},
                    {"linking", kLinking}};
  return dump_json(all) + "\n";
}

}  // namespace

int run_version(bool json) {
  return print(json ? version_json() : version_text());
}

}  // namespace belljar
