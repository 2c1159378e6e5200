// Turns system calls in program text into jumps to the kernel, before the text is executed; and cpuid, which a virtual
// machine leaves for its host, where the leaf is told right before.
//
// One instruction of at least 5 bytes in straight-line code before the syscall becomes "jmp rel32" to a trampoline that
// does what stood between and goes to the kernel; all bytes after it stay, the syscall too. So branches to any later
// instruction still find correct code: it traps then, which is slower. What has no such instruction is left to trap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace belljar::kernel {

// Room before the first byte of an image, for the jumps of its patched text.
inline constexpr std::uint64_t kTrampolineSize = 0x1'0000;

// Text and its trampolines, as they lie in memory that is being prepared, and at which distance they will be mapped.
struct TextToPatch {
  std::span<std::uint8_t> text;
  std::span<std::uint8_t> trampolines;
  std::int64_t distance = 0;  // from the first byte of the trampolines to that of the text, once mapped
};

struct PatchCounts {
  std::uint32_t patched = 0;
  std::uint32_t left = 0;  // will trap
  std::size_t trampoline_bytes = 0;
};

PatchCounts patch_text(const TextToPatch& text);

}  // namespace belljar::kernel
