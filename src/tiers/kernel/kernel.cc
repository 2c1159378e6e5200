#include "tiers/kernel/kernel.h"

#include <fmt/format.h>

#include "host/own_program.h"
#include "spec/errors.h"
#include "tiers/container/container.h"
#include "tiers/container/plan.h"
#include "tiers/refused_limits.h"

namespace belljar {
namespace {

constexpr const char* kImageName = "belljar-ukernel";
constexpr const char* kBrokerName = "belljar-broker";

Result<Fd> open_program(const char* name) {
  auto program = host::open_own_program(name);
  if (program) return std::move(program->opened);
  return fail(ErrorCode::host_unsupported,
              fmt::format("the program {} is {}; it came with belljar, so install that again", name,
                          host::own_program_places()));
}

std::unexpected<Error> not_here(std::string_view what) {
  return fail(ErrorCode::usage, fmt::format("{} is not there in the kernel tier yet; use --isolation container", what));
}

Result<void> check_supported(const SandboxSpec& spec) {
  if (!spec.allow.empty()) return not_here("--allow");
  if (!spec.workspace.empty()) return not_here("--workspace");
  for (const MountSpec& mount : spec.mounts) {
    if (mount.access == MountAccess::read_write) {
      return not_here(fmt::format("--mount {}:{}:rw", mount.source, mount.target));
    }
  }
  return {};
}

class KernelTier final : public Tier {
 public:
  std::string_view name() const override { return "kernel"; }
  std::vector<WallReport> probe() const override { return container_tier().probe(); }
  Result<SandboxSpec> trial() const override {
    TRY(open_program(kImageName));
    TRY(open_program(kBrokerName));
    SandboxSpec spec;
    spec.tier = name();
    spec.command = {"true"};
    return spec;
  }
  Result<void> check(const SandboxSpec& spec) const override {
    TRY_VOID(check_supported(spec));
    return check_refused_limits(name(), spec.limits);
  }
  Result<std::unique_ptr<RunningSandbox>> start(const SandboxSpec& spec) const override {
    TRY_VOID(check_supported(spec));
    container::UserKernel kernel;
    kernel.image = TRY(open_program(kImageName));
    kernel.broker = TRY(open_program(kBrokerName));
    return container::start_with_kernel(spec, std::move(kernel));
  }
};

}  // namespace

const Tier& kernel_tier() {
  static const KernelTier kTier;
  return kTier;
}

}  // namespace belljar
