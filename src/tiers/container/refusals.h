// System calls that the filter refuses: answered here, so that the result can name them.
#pragma once

#include <vector>

#include "base/fd.h"
#include "seccomp/filter.h"
#include "spec/outcome.h"

namespace belljar::container {

// Listens for one sandbox, on one thread. Without it (closed, or never opened) the kernel answers ENOSYS.
class Refusals {
 public:
  // `listener`: of seccomp_unotify(2).
  void listen(Fd listener) { listener_ = std::move(listener); }

  // Readable once a call waits for its answer; -1 where nobody listens.
  int fd() const { return listener_.get(); }

  // Answers one call with the errno of its row. The first ten thousand at once; a program that asks for more waits a
  // millisecond each, so that it keeps itself and not the supervisor busy.
  void answer();

  // What was refused, the most frequent first.
  std::vector<Denial> denials() const;

 private:
  struct Count {
    const SyscallRule* rule;
    std::uint64_t calls;
  };

  Fd listener_;
  std::vector<Count> counts_;
  std::uint64_t answered_ = 0;
};

}  // namespace belljar::container
