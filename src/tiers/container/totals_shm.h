// What the sampler has added up, in a page that init and the supervisor share: readable also after init was killed. The
// program never sees it: it loses the mapping when it is executed.
#pragma once

#include <atomic>
#include <cstdint>

namespace belljar::container {

struct SampledTotals {
  std::atomic<std::uint64_t> cpu_ms = 0;
  std::atomic<std::uint64_t> memory_peak_bytes = 0;
};

}  // namespace belljar::container
