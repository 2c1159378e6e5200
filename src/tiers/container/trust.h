// Has programs trust the authority that ends their TLS outside (SandboxSpec::secrets, rules with methods and paths):
// beside all that the image trusts, in the places where programs look.
#pragma once

#include <string_view>
#include <vector>

#include "spec/sandbox_spec.h"
#include "tiers/container/plan.h"

namespace belljar::container {

// The image's certificates and this one; a file in the root.
inline constexpr const char* kTrustFile = "/belljar-certificates.pem";

// After the image's and the caller's mounts are planned.
void plan_trust(std::string_view authority_pem, StartPlan* plan);

// Variables by which programs find kTrustFile.
std::vector<EnvironmentVariable> trust_variables();

}  // namespace belljar::container
