// Where content caches are kept, on the side of the supervisor: one file for each image and user of a caller.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace belljar::content_cache {

// The same file twice.
struct OpenedCache {
  Fd writable;
  Fd readable;
};

// Below cache_folder(). Makes the file where it is missing, full, damaged, of another size, or of another start of the
// host (after a crash of the host, what it holds may not have reached the disk). `what` tells one cache from all
// others. Nothing is open where there can be no cache: the sandbox then keeps its own copies.
OpenedCache open_cache(std::string_view what);
// The same in a folder that is named.
OpenedCache open_cache_in(const std::string& folder, std::string_view what);

}  // namespace belljar::content_cache
