// Program text as guests see it: with its system calls patched into jumps, so that they cost a call and not a trap. The
// content cache brings such text along. That of other files is patched once for the sandbox, after its first call
// trapped, and kept in the arena for all processes.
#pragma once

#include <cstdint>

#include "kernel/mm/address_space.h"
#include "kernel/mm/text_patch.h"

namespace belljar::kernel {

// Notes where an image (an executable, a library) begins in the address space: `content_offset` is its first byte in
// the content file. The kTrampolineSize bytes before are free, or the image's text is not patched.
void note_image(std::uint64_t image_id, std::uint64_t address, std::uint64_t content_offset);
// Forgets all, for execve(2).
void forget_images();

// One mapping of a file of the image, as mmap(2) of the host will get it.
struct TextRequest {
  std::uint64_t address;
  std::uint64_t size;
  int protection;
  int flags;
  const MapSource& source;  // of contents, and of an image
};

// Both as mmap(2): an address, or -errno. map_text() is for what is executed: it maps patched text where there is any.
long map_text(const TextRequest& request, bool* is_patched);
// Whether what is mapped from its first byte on may have text: other files, such as those of a locale, need no room.
bool is_library(const MapSource& source);
// The first, whole mapping of a library by the dynamic loader: leaves room before it.
long map_library(const TextRequest& request);

// After a system call that trapped at `site` (the address after the instruction): patches the text that it is in.
void patch_trapped_site(std::uint64_t site);

}  // namespace belljar::kernel
