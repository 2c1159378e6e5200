#include "wasm/confine_self.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace belljar::wasm {

void confine_self(const CompiledProfile& profile) {
  const auto rows = profile.program;
  const sock_fprog program{.len = static_cast<unsigned short>(rows.size()),
                           .filter = const_cast<sock_filter*>(rows.data())};  // NOLINT(*-const-cast): an old interface
  const bool is_confined = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                           ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
  if (!is_confined) std::abort();
}

}  // namespace belljar::wasm
