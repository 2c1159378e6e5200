#include "kernel/mm/text_patch.h"

#include <cstring>

namespace belljar::kernel {
namespace {

constexpr std::size_t kJumpSize = 5;
constexpr std::size_t kSyscallSize = 2;
constexpr std::size_t kLookBack = 24;     // how far before a syscall its number is looked for
constexpr std::size_t kShortReach = 120;  // of a jump with 8 bits
constexpr std::uint32_t kCallsMost = 600;
constexpr std::uint8_t kBreakpoint = 0xcc;  // int3

// Both instructions that are patched are of two bytes, and what is jumped to is in ThreadState.
struct Way {
  std::uint8_t lea;     // ModRM of lea AFTER(%rip),REGISTER
  std::uint8_t offset;  // of the kernel's entry from gs
};
constexpr Way kSyscallWay = {0x0d, 32};  // rcx, which syscall overwrites
constexpr Way kCpuidWay = {0x15, 64};    // rdx, which cpuid overwrites

bool is_processor_leaf(std::uint32_t leaf) {
  return (leaf & 0x7fff'ffff) < 0x40;
}

// The length of a ModRM byte and what belongs to it; 0 where the operand is relative to rip, which can't be moved.
std::size_t modrm_length(const std::uint8_t* at) {
  const int mode = at[0] >> 6;
  const int rm = at[0] & 7;
  if (mode == 3) return 1;
  if (mode == 0 && rm == 5) return 0;
  std::size_t length = 1;
  if (rm == 4) {
    ++length;
    if (mode == 0 && (at[1] & 7) == 5) length += 4;
  }
  return length + (mode == 1 ? 1U : mode == 2 ? 4U : 0U);
}

// The length of an instruction of those that stand between a call's number and its syscall: moves, arithmetic, lea. 0:
// another.
std::size_t instruction_length(const std::uint8_t* at) {
  std::size_t prefix = 0;
  bool is_wide = false;
  if ((at[0] & 0xf0) == 0x40) {
    is_wide = (at[0] & 8) != 0;
    prefix = 1;
  }
  const std::uint8_t code = at[prefix];
  std::size_t immediate = 0;
  switch (code) {
    case 0x01:
    case 0x03:
    case 0x09:
    case 0x0b:
    case 0x21:
    case 0x23:
    case 0x29:
    case 0x2b:
    case 0x31:
    case 0x33:
    case 0x39:
    case 0x3b:
    case 0x63:
    case 0x85:
    case 0x89:
    case 0x8b:
    case 0x8d:
      break;
    case 0x80:
    case 0x83:
    case 0xc1:
      immediate = 1;
      break;
    case 0x81:
    case 0xc7:
      immediate = 4;
      break;
    default:
      if (code >= 0xb8 && code <= 0xbf) return prefix + (is_wide ? 9U : 5U);
      return 0;
  }
  const std::size_t operand = modrm_length(at + prefix + 1);
  return operand == 0 ? 0 : prefix + 1 + operand + immediate;
}

// How many bytes an instruction after a syscall takes, of those that look at its result and return; and whether what
// follows is reached by branches only. No bytes: another instruction.
struct Step {
  std::size_t size = 0;
  bool is_end = false;
};

Step step_after_call(const std::uint8_t* at) {
  const std::size_t prefix = at[0] == 0x64 || at[0] == 0x66 ? 1 : 0;  // of fs, where errno is; or of a 16-bit operand
  const std::size_t wide = (at[prefix] & 0xf0) == 0x40 ? prefix + 1 : prefix;
  const std::uint8_t code = at[wide];
  if (at[0] == 0xc3 || at[0] == 0xf4 || at[0] == kBreakpoint) return {.size = 1, .is_end = true};  // ret, hlt
  if (code == 0xeb || code == 0xe9) return {.size = code == 0xeb ? 2U : 5U, .is_end = true};       // jmp
  if (code >= 0x70 && code <= 0x7f) return {.size = 2};                                            // jcc
  if (code == 0x0f && at[wide + 1] >= 0x80 && at[wide + 1] <= 0x8f) return {.size = 6};
  if (code == 0x0f && at[wide + 1] == 0x05) return {.size = kSyscallSize};
  const bool is_nop_or_cmov = code == 0x0f && (at[wide + 1] == 0x1f || (at[wide + 1] & 0xf0) == 0x40);
  if (is_nop_or_cmov) return {.size = wide + 2 + modrm_length(at + wide + 2)};
  if (code == 0x90) return {.size = wide + 1};
  if (code == 0x3d) return {.size = wide + 5};                  // cmp $NUMBER,%eax
  if (code >= 0x50 && code <= 0x5f) return {.size = wide + 1};  // push, pop
  if (code == 0xe8) return {.size = 5};                         // call
  const std::size_t operand = (at[wide + 1] & 0xc7) == 5 ? 5 : modrm_length(at + wide + 1);
  if (code == 0xf7 && (at[wide + 1] & 0x30) != 0) return {.size = wide + 1 + operand};  // neg, not
  const std::size_t size = instruction_length(at + prefix);
  if (size != 0) return {.size = prefix + size};
  return code == 0x8b || code == 0x8d || code == 0x89 ? Step{.size = wide + 1 + operand} : Step{};
}

// Whether whole instructions fill exactly `size` bytes.
bool is_chain(const std::uint8_t* at, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const std::size_t length = instruction_length(at + done);
    if (length == 0) return false;
    done += length;
  }
  return done == size;
}

class Patcher {
 public:
  explicit Patcher(const TextToPatch& text) : text_(text) {}

  PatchCounts run() {
    const std::size_t size = text_.text.size();
    for (std::size_t at = kLookBack + 8; at + kSyscallSize <= size; ++at) {
      const auto* const found =
          static_cast<const std::uint8_t*>(std::memchr(&text_.text[at], 0x0f, size - kSyscallSize + 1 - at));
      if (found == nullptr) break;
      at = static_cast<std::size_t>(found - text_.text.data());
      const std::uint8_t code = text_.text[at + 1];
      if (code == 0xa2 && patch_number_move(at, kCpuidWay)) ++counts_.patched;
      if (code != 0x05) continue;
      if (patch(at)) {
        ++counts_.patched;
      } else {
        ++counts_.left;
      }
    }
    counts_.trampoline_bytes = used_;
    return counts_;
  }

 private:
  bool patch(std::size_t site) {
    return patch_number_move(site, kSyscallWay) || patch_wide_move(site) || patch_stack_load(site) ||
           patch_short_move(site);
  }

  // mov $NUMBER,%eax and whole instructions up to the syscall; or the same with the leaf up to the cpuid.
  bool patch_number_move(std::size_t site, const Way& way) {
    for (std::size_t back = kJumpSize; back <= kLookBack; ++back) {
      const std::uint8_t* const at = &text_.text[site - back];
      if (at[0] != 0xb8 || (at[-1] & 0xf0) == 0x40) continue;
      std::uint32_t number;
      std::memcpy(&number, at + 1, sizeof number);
      const bool is_known = &way == &kCpuidWay ? is_processor_leaf(number) : number < kCallsMost;
      if (!is_known || !is_chain(at, back)) continue;
      return emit(site - back, back, site, site - back, way);
    }
    return false;
  }

  // mov $NUMBER,%rax, of 7 bytes.
  bool patch_wide_move(std::size_t site) {
    const std::uint8_t* const at = &text_.text[site - 7];
    return at[0] == 0x48 && at[1] == 0xc7 && at[2] == 0xc0 && redirect(site - 7, 7, site);
  }

  // mov N(%rsp),REGISTER, of 5 bytes, as before a call with six arguments.
  bool patch_stack_load(std::size_t site) {
    const std::uint8_t* const at = &text_.text[site - 5];
    return (at[0] & 0xf8) == 0x48 && at[1] == 0x8b && (at[2] & 0xc7) == 0x44 && at[3] == 0x24 &&
           redirect(site - 5, 5, site);
  }

  // xor %eax,%eax (read(2)) and mov REGISTER,%eax (_exit(2)), of 2 bytes: a short jump to unused bytes after a return
  // or a jump, which hold the long one.
  bool patch_short_move(std::size_t site) {
    const std::uint8_t* const at = &text_.text[site - 2];
    const bool is_zeroed = at[0] == 0x31 && at[1] == 0xc0;
    const bool is_moved = at[0] == 0x89 && (at[1] & 0xc7) == 0xc0;
    if ((!is_zeroed && !is_moved) || (at[-1] & 0xf0) == 0x40) return false;
    const std::size_t place = padding_after(site + kSyscallSize);
    const std::size_t size = place == 0 ? 0 : padding_size(place);
    if (size == 0 || !emit(site - 2, 2, site, place, kSyscallWay)) return false;
    std::memset(&text_.text[place + kJumpSize], kBreakpoint, size - kJumpSize);  // for who walks over it after this
    text_.text[site - 2] = 0xeb;
    text_.text[site - 1] = static_cast<std::uint8_t>(place - site);
    return true;
  }

  // The first unused bytes that whole instructions from `at` on lead to; 0: none near enough.
  std::size_t padding_after(std::size_t at) const {
    bool is_end = false;
    for (std::size_t place = at; place - at < kShortReach && place + 16 <= text_.text.size();) {
      if (is_end && padding_size(place) != 0) return place;
      const Step step = step_after_call(&text_.text[place]);
      if (step.size == 0) return 0;
      is_end = step.is_end;
      place += step.size;
    }
    return 0;
  }

  // Of int3 and nops that are at least a long jump's room; else 0.
  std::size_t padding_size(std::size_t place) const {
    std::size_t size = 0;
    while (size < kJumpSize) {
      const std::uint8_t* const at = &text_.text[place + size];
      if (at[0] == kBreakpoint || at[0] == 0x90) {
        ++size;
        continue;
      }
      std::size_t prefixes = 0;
      while (prefixes < 4 && (at[prefixes] == 0x66 || at[prefixes] == 0x2e)) ++prefixes;
      if (at[prefixes] != 0x0f || at[prefixes + 1] != 0x1f) return 0;
      const std::size_t operand = modrm_length(at + prefixes + 2);
      if (operand == 0) return 0;
      size += prefixes + 2 + operand;
    }
    return size;
  }

  bool redirect(std::size_t from, std::size_t size, std::size_t site) {
    return emit(from, size, site, from, kSyscallWay);
  }

  // A trampoline with the `size` bytes at `from`, then lea AFTER(%rip),REGISTER and jmp *%gs:OFFSET; at `jump`, a jump
  // to it.
  bool emit(std::size_t from, std::size_t size, std::size_t site, std::size_t jump, const Way& way) {
    constexpr std::size_t kLeaSize = 7;
    const std::uint8_t to_kernel[] = {0x65, 0xff, 0x24, 0x25, way.offset, 0, 0, 0};
    const std::size_t start = used_;
    if (start + size + kLeaSize + sizeof to_kernel > text_.trampolines.size()) return false;
    std::uint8_t* at = &text_.trampolines[start];
    std::memcpy(at, &text_.text[from], size);
    at += size;
    const std::uint8_t lea[] = {0x48, 0x8d, way.lea};
    std::memcpy(at, lea, sizeof lea);
    const auto after_lea = static_cast<std::int64_t>(start + size + kLeaSize);
    const auto back =
        static_cast<std::int32_t>(text_.distance + static_cast<std::int64_t>(site + kSyscallSize) - after_lea);
    std::memcpy(at + sizeof lea, &back, sizeof back);
    std::memcpy(at + kLeaSize, to_kernel, sizeof to_kernel);
    used_ = (start + size + kLeaSize + sizeof to_kernel + 15) & ~std::size_t{15};
    const auto there = static_cast<std::int32_t>(static_cast<std::int64_t>(start) - text_.distance -
                                                 static_cast<std::int64_t>(jump + kJumpSize));
    text_.text[jump] = 0xe9;
    std::memcpy(&text_.text[jump + 1], &there, sizeof there);
    return true;
  }

  TextToPatch text_;
  PatchCounts counts_;
  std::size_t used_ = 0;
};

}  // namespace

PatchCounts patch_text(const TextToPatch& text) {
  return Patcher(text).run();
}

}  // namespace belljar::kernel
