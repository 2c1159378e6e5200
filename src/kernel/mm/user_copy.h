// Copies that may fault. The image has them in assembly (entry/user_copy.S), where the fault handler knows them.
#pragma once

#include <cstddef>

namespace belljar::kernel {

extern "C" {
// Bytes that were not copied: 0 unless an address faulted.
std::size_t user_copy(void* to, const void* from, std::size_t size);
std::size_t user_zero(void* to, std::size_t size);
// Copies up to and with the NUL, at most `size` bytes. The length without it (`size` where there is none), or -1.
long user_string(char* to, const char* from, std::size_t size);
}

}  // namespace belljar::kernel
