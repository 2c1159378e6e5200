// From what was asked for to what will be done: opens everything of the host that goes into the sandbox, once, as the
// caller.
#pragma once

#include "base/result.h"
#include "image/host_image.h"
#include "image/image_store.h"
#include "spec/sandbox_spec.h"
#include "tiers/container/container.h"
#include "tiers/container/plan.h"
#include "tiers/container/walls.h"

namespace belljar::container {

// `loaded` is the image that the spec names, or null: then `host_image` is what the program sees, unless
// `own` is not null, which has all there is. `authority_pem`: see plan_trust(); empty: none.
Result<StartPlan> make_plan(const SandboxSpec& spec, const HostFacts& facts, HostImage& host_image, LoadedImage* loaded,
                            std::string_view authority_pem, OwnProgram* own);

}  // namespace belljar::container
