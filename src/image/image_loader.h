// Loads an image into the store: from an OCI archive or layout, a docker archive, or a root file system as tar archive
// or folder; layers plain or packed by gzip, zstd or xz.
//
// The bytes of the source are read here, hashed, and fed to confined processes (confined.h), which take archives apart
// and write files. So a layer has the digest that the manifest names before its tree is used, and what its digest is
// said to be does not depend on the process that it may have taken over. JSON is parsed here, within bounds.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "image/image_store.h"

namespace belljar {

struct LoadLimits {
  std::uint64_t entries_max = 1'000'000;
  std::uint64_t bytes_max = std::uint64_t{16} << 30;  // unpacked
  std::chrono::milliseconds time_max = std::chrono::minutes(10);
};

// Loads `source` and names it. Waits for other loads; an image whose layers were unpacked before shares their tree. The
// calling process must have one thread only. Errors: bad_image, no_resources, host_unsupported; nothing is left of a
// load that failed.
Result<ImageRecord> load_image(ImageStore& store, const std::string& name, const std::string& source,
                               const LoadLimits& limits);

// The same for an image that is named by its path, unless it is loaded and has not changed since.
Result<ImageRecord> load_image_path(ImageStore& store, const std::string& path, const LoadLimits& limits);

}  // namespace belljar
