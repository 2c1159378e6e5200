#include "kernel/task/sandbox_facts.h"

#include "kernel/arena/roots.h"

namespace belljar::kernel {

SandboxFacts& sandbox_facts() {
  return root_object(arena_roots().facts);
}

}  // namespace belljar::kernel
