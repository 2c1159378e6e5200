#include "kernel/mm/text_cache.h"

#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "kernel/arena/heap.h"
#include "kernel/arena/layout.h"
#include "kernel/arena/lock.h"
#include "kernel/arena/roots.h"
#include "kernel/fs/file_data.h"
#include "kernel/host/calls.h"
#include "kernel/mm/text_patch.h"

namespace belljar::kernel {

// Patched text of the sandbox; entries are never removed.
struct OwnText {
  OwnText* next = nullptr;
  std::uint64_t content_offset = 0;  // of the text, page by page
  std::uint64_t size = 0;
  std::uint64_t distance = 0;      // from the first byte of the trampolines to the text, once mapped
  std::uint64_t arena_offset = 0;  // of the trampolines; the text follows. 0: there is nothing to patch
  std::uint64_t trampoline_size = 0;
};

class TextCache {
 public:
  Lock lock{LockRank::tree};  // taken under the address space's
  OwnText* first = nullptr;
};

namespace {

constexpr std::uint64_t kTextMost = 64ULL << 20;

// Where images are in this process's memory; the last ones, where there are more. Guarded by the address space's lock.
struct ImagePlace {
  std::uint64_t image_id = 0;
  std::uint64_t address = 0;
  std::uint64_t content_offset = 0;
};
constexpr std::size_t kPlaces = 128;
ImagePlace places[kPlaces];
std::size_t next_place = 0;

const ImagePlace* find_place(std::uint64_t image_id, std::uint64_t address) {
  const ImagePlace* found = nullptr;
  for (const ImagePlace& place : places) {
    if (place.image_id == image_id && place.address <= address &&
        (found == nullptr || place.address > found->address)) {
      found = &place;
    }
  }
  return found;
}

TextCache& cache() {
  return root_object(arena_roots().texts);
}

OwnText* find_text(std::uint64_t content_offset, std::uint64_t size, std::uint64_t distance) {
  for (OwnText* text = cache().first; text != nullptr; text = text->next) {
    if (text->content_offset == content_offset && text->size == size && text->distance == distance) return text;
  }
  return nullptr;
}

// Copies the text into the arena, and patches it there.
OwnText* make_text(std::uint64_t content_offset, std::uint64_t size, std::uint64_t distance) {
  auto* const made = make_object<OwnText>();
  if (made == nullptr) return nullptr;
  made->content_offset = content_offset;
  made->size = size;
  made->distance = distance;
  const auto range = take_range((kTrampolineSize + size) / kPageSize);
  if (range) {
    auto* const memory = reinterpret_cast<std::uint8_t*>((*range)->address);
    std::memcpy(memory + kTrampolineSize, reinterpret_cast<const void*>(kContentBase + content_offset), size);
    const PatchCounts counts = patch_text({.text = {memory + kTrampolineSize, size},
                                           .trampolines = {memory, kTrampolineSize},
                                           .distance = static_cast<std::int64_t>(distance)});
    if (counts.patched > 0) {
      made->arena_offset = (*range)->arena_offset();
      made->trampoline_size = page_up(counts.trampoline_bytes);
    } else {
      give_range(*range, (kTrampolineSize + size) / kPageSize);
    }
  }
  made->next = cache().first;
  cache().first = made;
  return made;
}

// Trampolines at `from`, then the text.
long map_patched(HostPlace from, const PatchedText& text, std::uint64_t address) {
  constexpr int kProtection = PROT_READ | PROT_EXEC;
  constexpr int kFlags = MAP_PRIVATE | MAP_FIXED;
  const long first =
      host::mmap(address - text.distance, text.trampoline_size, kProtection, kFlags, from.fd, from.offset);
  if (first < 0) return first;
  return host::mmap(address, text.size, kProtection, kFlags, from.fd, from.offset + kTrampolineSize);
}

long map_patched(const OwnText& text, std::uint64_t address) {
  const PatchedText parts{text.content_offset, text.size, text.distance, 0, text.trampoline_size};
  return map_patched(HostPlace{kArenaFd, text.arena_offset}, parts, address);
}

std::uint64_t distance_to(const ImagePlace& place, std::uint64_t address) {
  return address - (place.address - kTrampolineSize);
}

}  // namespace

void note_image(std::uint64_t image_id, std::uint64_t address, std::uint64_t content_offset) {
  places[next_place++ % kPlaces] = {image_id, address, content_offset};
}

void forget_images() {
  for (ImagePlace& place : places) place = {};
}

long map_text(const TextRequest& request, bool* is_patched) {
  const MapSource& source = request.source;
  const ImagePlace* const place = find_place(source.image_id, request.address);
  if (place != nullptr && (request.flags & MAP_FIXED) != 0) {
    const std::uint64_t distance = distance_to(*place, request.address);
    if (source.text.size == request.size && source.text.source == source.offset && source.text.distance == distance) {
      *is_patched = true;
      return map_patched(place_of_content(source.text.offset), source.text, request.address);
    }
    LockGuard guard(cache().lock);
    const OwnText* const text = find_text(source.offset, request.size, distance);
    if (text != nullptr && text->arena_offset != 0) {
      *is_patched = true;
      return map_patched(*text, request.address);
    }
  }
  const HostPlace plain = place_of_content(source.offset);
  return host::mmap(request.address, request.size, request.protection, request.flags, plain.fd, plain.offset);
}

bool is_library(const MapSource& source) {
  return source.size >= kPageSize &&
         std::memcmp(reinterpret_cast<const void*>(kContentBase + source.offset), ELFMAG, SELFMAG) == 0;
}

long map_library(const TextRequest& request) {
  const long room =
      host::mmap(0, request.size + kTrampolineSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room < 0) return room;
  const std::uint64_t address = static_cast<std::uint64_t>(room) + kTrampolineSize;
  const HostPlace whole = place_of_content(request.source.offset);
  const long mapped = host::mmap(address, std::min(request.size, request.source.size), request.protection,
                                 request.flags | MAP_FIXED, whole.fd, whole.offset);
  if (mapped < 0) {
    host::munmap(static_cast<std::uint64_t>(room), request.size + kTrampolineSize);
    return mapped;
  }
  note_image(request.source.image_id, address, request.source.offset);
  return mapped;
}

void patch_trapped_site(std::uint64_t site) {
  lock_address_space_for_fork();
  MemoryArea area;
  if (find_area_locked(site - 1, &area) && area.begin < site && area.image_id != 0 && !area.is_patched &&
      area.protection == (PROT_READ | PROT_EXEC) && area.end - area.begin <= kTextMost && !area.is_shared) {
    const ImagePlace* const place = find_place(area.image_id, area.begin);
    if (place != nullptr) {
      const std::uint64_t content_offset = place->content_offset + area.offset;
      const std::uint64_t distance = distance_to(*place, area.begin);
      LockGuard guard(cache().lock);
      // It is there already where the mapping is older than the text.
      OwnText* text = find_text(content_offset, area.end - area.begin, distance);
      if (text == nullptr) text = make_text(content_offset, area.end - area.begin, distance);
      if (text != nullptr && text->arena_offset != 0) {
        map_patched(*text, area.begin);
        mark_patched_locked(area.begin);
      }
    }
  }
  unlock_address_space_after_fork();
}

}  // namespace belljar::kernel
