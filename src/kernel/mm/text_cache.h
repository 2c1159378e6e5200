// Program text as guests see it: with its system calls patched into jumps, so that they cost a call and not a trap. A
// file's text is patched once for the sandbox, after its first call trapped, and kept in the arena for all processes.
#pragma once

#include <cstdint>

#include "kernel/mm/address_space.h"

namespace belljar::kernel {

// Room before the first byte of an image, for the jumps of its patched text.
inline constexpr std::uint64_t kTrampolineSize = 0x1'0000;

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
  std::uint64_t content_offset;
  std::uint64_t image_id;
};

// Both as mmap(2): an address, or -errno. map_text() is for what is executed: it maps patched text where there is any.
long map_text(const TextRequest& request, bool* is_patched);
// The first, whole mapping of a library by the dynamic loader: leaves room before it.
long map_library(const TextRequest& request);

// After a system call that trapped at `site` (the address after the instruction): patches the text that it is in.
void patch_trapped_site(std::uint64_t site);

}  // namespace belljar::kernel
