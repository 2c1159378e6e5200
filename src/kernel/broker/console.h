// The program's standard streams: pipes whose other ends the broker holds.
#pragma once

#include "kernel/broker/rings_shm.h"
#include "kernel/fs/file.h"

namespace belljar::kernel {

// Open descriptions of the three, for the first process. Null when the heap is full.
Ref<File> open_console(shm::StreamIndex index);

// For the helper thread that the broker wakes: tells whoever waits for one of the streams.
void wake_console_waiters();
void make_console();

}  // namespace belljar::kernel
