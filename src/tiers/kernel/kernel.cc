#include "tiers/kernel/kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>

#include "spec/errors.h"
#include "tiers/container/container.h"
#include "tiers/container/plan.h"

namespace belljar {
namespace {

constexpr const char* kImageName = "belljar-ukernel";
constexpr const char* kBrokerName = "belljar-broker";

// Beside the running program, where all are built or installed together; else where the installation has them.
Result<Fd> open_program(const char* name) {
  std::array<char, PATH_MAX> own{};
  const ssize_t length = ::readlink("/proc/self/exe", own.data(), own.size() - 1);
  const std::string_view path(own.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::string folder(path.substr(0, path.rfind('/') + 1));
  for (const std::string& place :
       {folder + name, folder + "../libexec/belljar/" + name, std::string(BELLJAR_LIBEXEC) + "/" + name}) {
    auto program = open_at(AT_FDCWD, place.c_str(), O_PATH);
    if (program) return std::move(*program);
  }
  return fail(
      ErrorCode::host_unsupported,
      fmt::format("the program {} is neither beside this one nor in {}; it came with belljar, so install that again",
                  name, BELLJAR_LIBEXEC));
}

std::unexpected<Error> not_here(std::string_view what) {
  return fail(ErrorCode::usage, fmt::format("{} is not there in the kernel tier yet; use --isolation container", what));
}

Result<void> check_supported(const SandboxSpec& spec) {
  if (!spec.allow.empty()) return not_here("--allow");
  if (!spec.workspace.empty()) return not_here("--workspace");
  if (!spec.collect.empty()) return not_here("--collect");
  if (spec.terminal) return not_here("--tty");
  for (const MountSpec& mount : spec.mounts) {
    if (mount.access == MountAccess::read_write) {
      return not_here(fmt::format("--mount {}:{}:rw", mount.source, mount.target));
    }
    for (const std::string_view folder : {"/tmp", "/dev/shm"}) {
      if (mount.target == folder || mount.target.starts_with(std::string(folder) + "/")) {
        return not_here(fmt::format("--mount {}:{}: a place below {}", mount.source, mount.target, folder));
      }
    }
  }
  return {};
}

class KernelTier final : public Tier {
 public:
  std::string_view name() const override { return "kernel"; }
  std::vector<WallReport> probe() const override { return container_tier().probe(); }
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
