// Where the files of a sandbox lie in the memory of its user-space kernel: how they get out of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "spec/sandbox_spec.h"
#include "tiers/tier.h"

namespace belljar::container {

// Has a program of Belljar's own, in a sandbox of its own, write what the arena holds of /tmp and `own_folders` into
// that sandbox's writable space, which is handed on. Every process of the arena's sandbox must be gone. bad_collect:
// the files can't be read.
Result<std::vector<WritablePlace>> read_kernel_places(const SandboxSpec& spec, std::span<const std::string> own_folders,
                                                      Fd arena);

}  // namespace belljar::container
