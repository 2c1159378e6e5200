#include "kernel/mm/text_patch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace belljar::kernel {
namespace {

constexpr std::size_t kAt = 64;  // of the code, among bytes of int3
using Bytes = std::vector<std::uint8_t>;

struct Patched {
  explicit Patched(std::initializer_list<std::uint8_t> code) : text(256, 0xcc), trampolines(kTrampolineSize) {
    std::ranges::copy(code, text.begin() + kAt);
    counts = patch_text({.text = text, .trampolines = trampolines, .distance = kTrampolineSize});
  }
  Bytes at(std::size_t offset, std::size_t size) const {
    return {text.begin() + static_cast<std::ptrdiff_t>(offset),
            text.begin() + static_cast<std::ptrdiff_t>(offset + size)};
  }
  Bytes trampoline(std::size_t offset, std::size_t size) const {
    return {trampolines.begin() + static_cast<std::ptrdiff_t>(offset),
            trampolines.begin() + static_cast<std::ptrdiff_t>(offset + size)};
  }
  // Where the jump at `offset` of the text leads, from the first trampoline.
  std::int64_t target(std::size_t offset) const {
    std::int32_t there;
    std::memcpy(&there, &text[offset + 1], sizeof there);
    return static_cast<std::int64_t>(kTrampolineSize + offset + 5) + there;
  }

  Bytes text;
  Bytes trampolines;
  PatchCounts counts;
};

TEST(TextPatch, NumberBeforeTheCall) {
  const Patched patched{0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
  EXPECT_EQ(patched.counts.patched, 1U);
  EXPECT_EQ(patched.text[kAt], 0xe9);
  EXPECT_EQ(patched.target(kAt), 0);
  EXPECT_EQ(patched.at(kAt + 5, 3), (Bytes{0x0f, 0x05, 0xc3}));
  EXPECT_EQ(patched.trampoline(0, 8), (Bytes{0xb8, 39, 0, 0, 0, 0x48, 0x8d, 0x0d}));
  EXPECT_EQ(patched.trampoline(12, 8), (Bytes{0x65, 0xff, 0x24, 0x25, 32, 0, 0, 0}));
}

TEST(TextPatch, LeafBeforeCpuid) {
  const Patched patched{0xb8, 7, 0, 0, 0, 0x31, 0xc9, 0x0f, 0xa2, 0xc3};
  EXPECT_EQ(patched.counts.patched, 1U);
  EXPECT_EQ(patched.target(kAt), 0);
  EXPECT_EQ(patched.at(kAt + 5, 5), (Bytes{0x31, 0xc9, 0x0f, 0xa2, 0xc3}));
  EXPECT_EQ(patched.trampoline(0, 10), (Bytes{0xb8, 7, 0, 0, 0, 0x31, 0xc9, 0x48, 0x8d, 0x15}));
  EXPECT_EQ(patched.trampoline(14, 8), (Bytes{0x65, 0xff, 0x24, 0x25, 64, 0, 0, 0}));
}

TEST(TextPatch, ShortMoves) {
  for (const std::uint8_t code : {std::uint8_t{0x31}, std::uint8_t{0x89}}) {
    const std::uint8_t operand = code == 0x31 ? 0xc0 : 0xf0;  // xor %eax,%eax; mov %esi,%eax
    const Patched patched{code, operand, 0x0f, 0x05, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90};
    EXPECT_EQ(patched.counts.patched, 1U);
    EXPECT_EQ(patched.at(kAt, 4), (Bytes{0xeb, 3, 0x0f, 0x05}));
    EXPECT_EQ(patched.text[kAt + 5], 0xe9);
    EXPECT_EQ(patched.target(kAt + 5), 0);
    EXPECT_EQ(patched.trampoline(0, 2), (Bytes{code, operand}));
  }
}

// As in _exit(3): two calls, what looks at their results, and unused bytes after a jump.
TEST(TextPatch, ShortMovesBeforeAJump) {
  const Patched patched{0x89, 0xd0, 0x0f, 0x05, 0x48, 0x3d, 0,    0xf0, 0xff, 0xff, 0x77, 0x0e, 0xf4, 0x89,
                        0xf0, 0x0f, 0x05, 0xf7, 0xd8, 0x64, 0x41, 0x89, 0,    0xeb, 0xe5, 0x0f, 0x1f, 0x80,
                        0,    0,    0,    0,    0xeb, 0xf7, 0x0f, 0x1f, 0x84, 0,    0,    0,    0,    0};
  EXPECT_EQ(patched.counts.patched, 2U);
  EXPECT_EQ(patched.at(kAt, 2), (Bytes{0xeb, 25 - 2}));
  EXPECT_EQ(patched.at(kAt + 13, 2), (Bytes{0xeb, 34 - 15}));
  EXPECT_EQ(patched.text[kAt + 25], 0xe9);
  EXPECT_EQ(patched.at(kAt + 30, 2), (Bytes{0xcc, 0xcc}));
  EXPECT_EQ(patched.text[kAt + 34], 0xe9);
}

TEST(TextPatch, LeavesWhatItDoesNotKnow) {
  const auto is_left = [](std::initializer_list<std::uint8_t> code) {
    const Patched patched(code);
    return patched.at(kAt, code.size()) == Bytes(code);
  };
  // Moves of other registers look the same but for their prefix.
  EXPECT_TRUE(is_left({0x45, 0x31, 0xc0, 0x0f, 0x05, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90}));
  EXPECT_TRUE(is_left({0x44, 0x89, 0xc0, 0x0f, 0x05, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90}));
  EXPECT_TRUE(is_left({0xb8, 0, 0, 1, 0, 0x0f, 0x05, 0xc3}));        // no number of a call
  EXPECT_TRUE(is_left({0xb8, 0, 0, 1, 0, 0x0f, 0xa2, 0xc3}));        // no leaf
  EXPECT_TRUE(is_left({0xb8, 1, 0, 0, 0, 0xff, 0xd0, 0x0f, 0x05}));  // a call between
  EXPECT_TRUE(is_left({0x31, 0xc0, 0x0f, 0x05, 0xc3, 0x55, 0x48}));  // no room for the long jump
  EXPECT_TRUE(is_left({0x0f, 0xa2, 0xc3}));
  // No return, though the byte is one: mov %eax,%ebx, and nops that align a loop.
  EXPECT_TRUE(is_left({0x31, 0xc0, 0x0f, 0x05, 0x89, 0xc3, 0x0f, 0x1f, 0x80, 0, 0, 0, 0, 0xc9}));
}

}  // namespace
}  // namespace belljar::kernel
