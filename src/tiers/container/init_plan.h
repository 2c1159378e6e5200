// Copies a StartPlan into the memory that init reads.
#pragma once

#include "base/mapping.h"
#include "base/result.h"
#include "tiers/container/init_plan_shm.h"
#include "tiers/container/plan.h"

namespace belljar::container {

// Owns the shared memory, with an InitPlan at its start.
class InitPlanMemory {
 public:
  static Result<InitPlanMemory> create();

  InitPlan& plan() const { return *static_cast<InitPlan*>(memory_.address()); }

  // Lays `plan` out behind the InitPlan and points its members there. Fails when it does not fit: no_resources.
  Result<void> fill(const StartPlan& plan);

 private:
  explicit InitPlanMemory(Mapping memory);
  Mapping memory_;
};

}  // namespace belljar::container
