// Closing descriptors in bulk. close_range(2). Async-signal-safe.
#pragma once

#include <initializer_list>

namespace belljar::host {

// Closes every descriptor of this process but those of `keep` (at most 16; negative ones are passed over).
void close_all_but(std::initializer_list<int> keep);

}  // namespace belljar::host
