#include "tiers/container/trust.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "egress/inspection_sources.h"
#include "host/open_path.h"

namespace belljar::container {
namespace {

constexpr std::size_t kBundleBytesMax = std::size_t{2} << 20;
constexpr std::string_view kEtc = "/etc/";

// The content of a file of the image's /etc; empty where it has no such file, or a link in its place.
std::string image_file(const StartPlan& plan, std::string_view path) {
  const auto etc = std::ranges::find(plan.mounts, "/etc", &PlannedMount::target);
  if (etc == plan.mounts.end() || etc->is_caller_mount) return {};
  const std::string below(path.substr(kEtc.size()));
  const auto file = host::open_beneath(etc->opened.get(), below.c_str(), O_RDONLY | O_NONBLOCK);
  struct stat status{};
  if (!file || ::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return read_all(file->get(), kBundleBytesMax).value_or("");
}

// A file of the caller's own there stays.
bool is_callers(const StartPlan& plan, std::string_view path) {
  return std::ranges::any_of(plan.mounts, [&](const PlannedMount& mount) {
    return mount.is_caller_mount && (path == mount.target || path.starts_with(mount.target + "/"));
  });
}

}  // namespace

void plan_trust(std::string_view authority_pem, StartPlan* plan) {
  std::string bundle;
  std::vector<std::string> places;
  for (const std::string_view path : egress::trust_files()) {
    const std::string content = image_file(*plan, path);
    if (content.empty()) continue;
    if (bundle.empty()) bundle = content;
    if (!is_callers(*plan, path)) places.emplace_back(path);
  }
  if (!bundle.empty() && !bundle.ends_with('\n')) bundle += '\n';
  bundle += authority_pem;
  for (std::string& path : places) plan->cover_files.push_back({std::move(path), bundle});
  plan->files.push_back({kTrustFile, std::move(bundle)});
}

std::vector<EnvironmentVariable> trust_variables() {
  std::vector<EnvironmentVariable> variables;
  for (const char* name :
       {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"}) {
    variables.push_back({name, kTrustFile});
  }
  return variables;
}

}  // namespace belljar::container
