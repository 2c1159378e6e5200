// How much memory this process has from malloc(3), whichever library asked: OpenSSL and libnghttp2 keep what peers send
// too. One thread.
#pragma once

#include <cstddef>

namespace belljar::egress {

// Bytes in use. Counted where malloc is called, in static builds only (count_heap.cc): elsewhere, so with sanitizers,
// it stays 0.
inline constinit std::ptrdiff_t heap_bytes = 0;

}  // namespace belljar::egress
