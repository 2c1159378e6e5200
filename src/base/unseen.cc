#include "base/unseen.h"

#include <algorithm>

namespace belljar {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Default_Ignorable_Code_Point of the Unicode Standard.
constexpr Range kUnseen[] = {
    {0xAD, 0xAD},     {0x34F, 0x34F},   {0x61C, 0x61C},     {0x115F, 0x1160},   {0x17B4, 0x17B5},  {0x180B, 0x180F},
    {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F},   {0x3164, 0x3164},   {0xFE00, 0xFE0F},  {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

}  // namespace

bool is_unseen(char32_t c) {
  return std::ranges::any_of(kUnseen, [c](const Range& range) { return c >= range.first && c <= range.last; });
}

bool misleads_reader(char32_t c) {
  constexpr char32_t kLineSeparator = 0x2028;
  constexpr char32_t kParagraphSeparator = 0x2029;
  constexpr char32_t kBlankPattern = 0x2800;  // of Braille
  return is_unseen(c) || c == kLineSeparator || c == kParagraphSeparator || c == kBlankPattern;
}

}  // namespace belljar
