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

// A prepared host image. `etc`, `var` and `dev` live in a cache folder that only the caller can write, and are rebuilt
// when the host changes (packages, certificates, time zone, users ...): opening it costs a few stat(2) calls when
// nothing changed. Keep `lock` open for as long as anything has these folders mounted: an image that nobody locks is
// removed once it is stale. (A process that inherits the descriptor holds the lock too: flock(2).)
struct HostImage {
  Fd usr;   // O_PATH, the host's /usr
  Fd etc;   // O_PATH, folder of plain files and links owned by the caller
  Fd var;   // O_PATH, the same for the few things of /var/lib that links in /usr lead to; often not open
  Fd dev;   // O_PATH, folder with the device nodes and links; not open where nodes can't be made (unprivileged)
  Fd lock;  // shared lock of the cached image
  bool forbids_devices =
      false;             // it lies on a mount where nodes are none (mount(8), nodev): a copy of `dev` must allow them
  std::string etc_path;  // the same as paths, for tiers that must open them again in another mount namespace
  std::string var_path;  // empty where `var` is not open
  std::string dev_path;  // empty where `dev` is not open
  std::vector<RootEntry> root_entries;
};

// Where the caches are: /var/cache/belljar for root, $XDG_CACHE_HOME/belljar or ~/.cache/belljar otherwise.
// Errors: host_unsupported (no such place can be named).
Result<std::string> cache_folder();

// Opens the host image, building the cached folders first where they are missing or stale. Safe to call from several
// processes at once; a build that is killed half-way is never used. A build that takes more than a second says so on
// stderr where that is a terminal. Errors: host_unsupported, no_resources.
Result<HostImage> open_host_image();

// The same with everything named, for tests and for hosts seen from elsewhere.
struct ImagePlaces {
  std::string host_root = "/";
  std::string cache;                  // as cache_folder() gives it; made where it is missing
  unsigned trusted_owner = 0;         // the uid whose world-readable files may be copied
  void (*on_slow_build)() = nullptr;  // called once when a build has taken a second
};
Result<HostImage> open_host_image(const ImagePlaces& places);

}  // namespace belljar
