// Fills a folder with the image's own etc, var and dev, copied from the host under one rule.
#pragma once

#include <string>

#include "base/result.h"
#include "image/host_image.h"

namespace belljar {

// Writes "etc", "var" (where needed), "dev" (where device nodes can be made) and "manifest" into the empty folder
// `image_fd`.
//
// The rule: a file, folder or link is copied only if it and every folder above it belong to `places.trusted_owner` and
// are readable (folders: searchable) by everyone. Ownership and mode are read from the opened descriptor, so that a
// file swapped during the copy is judged itself. What is copied: a fixed list of /etc names, and whatever a link in
// /usr leads to in /etc or /var/lib. passwd, group, hosts and nsswitch.conf are never the host's.
// Errors: host_unsupported, no_resources.
Result<void> build_image(const ImagePlaces& places, int host_fd, int image_fd);

// The top-level names of the image that mirror the host's: links such as bin -> usr/bin, or folders to be bound.
std::vector<RootEntry> read_root_entries(int host_fd);

// True while everything that build_image() copied is unchanged on the host, and the copies have their sizes: after a
// crash of the machine they may be torn, since nothing waits for the disk.
bool manifest_matches(int host_fd, int image_fd);

}  // namespace belljar
