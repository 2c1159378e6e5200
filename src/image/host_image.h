// The host image: a read-only view of the host's /usr with a small /etc of its own. Nothing is fetched.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace belljar {

// A link at the root of the image, such as bin -> usr/bin; or a real folder to be bound, on hosts without merged /usr.
struct RootEntry {
  std::string name;         // "bin"
  std::string link_target;  // "usr/bin"; empty: `name` is a folder of the host to be bound
};

// A prepared host image. `etc` and `dev` live in a cache folder that only the caller can write, and are rebuilt when the host
// changes (packages, certificates, time zone, users ...): opening it costs a few stat(2) calls when nothing changed.
struct HostImage {
  Fd usr;            // O_PATH, the host's /usr
  Fd etc;            // O_PATH, folder of plain files and links owned by the caller
  Fd dev;            // O_PATH, folder with the device nodes and links; not open where nodes can't be made (unprivileged)
  std::string etc_path;  // the same as paths, for tiers that must open them again in another mount namespace
  std::string dev_path;
  std::vector<RootEntry> root_entries;
};

// Where the caches are: /var/cache/belljar for root, $XDG_CACHE_HOME or ~/.cache/belljar otherwise.
Result<std::string> cache_folder();

// Opens the host image, building the cached folders first where they are missing or stale. Safe to call from several
// processes at once; a build that is killed half-way is never used. Errors: host_unsupported, no_resources.
Result<HostImage> open_host_image();

}  // namespace belljar
