#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "cli/commit.h"
#include "cli/execute.h"
#include "spec/errors.h"
#include "tiers/tier.h"

namespace belljar {

int run_version() {
  std::string text = fmt::format("belljar {} (commit {})\ntiers:", BELLJAR_VERSION, kCommit);
  for (const Tier* tier : tiers()) text += fmt::format(" {}", tier->name());
  text += fmt::format("\nbuilt with: g++ {}.{}.{}, glibc {}.{}\n", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__,
                      __GLIBC__, __GLIBC_MINOR__);
  return write_all(STDOUT_FILENO, text) ? 0 : error_exit_status(ErrorCode::internal);
}

}  // namespace belljar
