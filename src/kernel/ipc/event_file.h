// eventfd(2).
#pragma once

#include <cstdint>

#include "kernel/fs/file.h"

namespace belljar::kernel {

enum class EventFileMode : std::uint8_t { counter, semaphore };

// Null when the heap is full.
Ref<File> make_event_file(std::uint64_t count, EventFileMode mode);

}  // namespace belljar::kernel
