#include "files/protected.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/utf8.h"

namespace belljar {
namespace {

constexpr ProtectedRow kRows[] = {
#define PROTECTED(path, why) {path, why},
#define PROTECTED_FILE(path, why) {path, why, true},
#include "files/protected.def"
#undef PROTECTED
#undef PROTECTED_FILE
};

struct Range {
  char32_t first;
  char32_t last;
};

// Default_Ignorable_Code_Point of the Unicode Standard, which a case-insensitive folder (ext4, f2fs) leaves out when it
// compares names.
constexpr Range kIgnored[] = {
    {0xAD, 0xAD},     {0x34F, 0x34F},   {0x61C, 0x61C},     {0x115F, 0x1160},   {0x17B4, 0x17B5},  {0x180B, 0x180F},
    {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F},   {0x3164, 0x3164},   {0xFE00, 0xFE0F},  {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

void append_key(std::string_view bytes, char32_t c, std::string* key) {
  constexpr char32_t kLongS = 0x17F;
  constexpr char32_t kKelvin = 0x212A;
  if (c >= 'A' && c <= 'Z') {
    *key += static_cast<char>(c - 'A' + 'a');
  } else if (c == kLongS) {
    *key += 's';
  } else if (c == kKelvin) {
    *key += 'k';
  } else if (!is_unseen(c)) {
    *key += bytes;
  }
}

// `key` is in lower case already.
bool matches(std::string_view pattern, std::string_view key) {
  if (pattern.starts_with('*')) {
    pattern.remove_prefix(1);
    key = key.substr(key.size() - std::min(key.size(), pattern.size()));
  }
  return std::ranges::equal(pattern, key,
                            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

}  // namespace

bool is_unseen(char32_t c) {
  return std::ranges::any_of(kIgnored, [c](const Range& range) { return c >= range.first && c <= range.last; });
}

std::span<const ProtectedRow> protected_rows() {
  return kRows;
}

std::string name_key(std::string_view name) {
  std::string key;
  while (!name.empty()) {
    const Utf8Step step = decode_utf8(name);
    const std::string_view bytes = name.substr(0, step.length);
    if (step.kind == Utf8Step::Kind::character) {
      append_key(bytes, step.code_point, &key);
    } else {
      key += bytes;
    }
    name.remove_prefix(step.length);
  }
  key.erase(key.find_last_not_of(". ") + 1);
  return key == "git~1" ? ".git" : key;  // the short name that FAT and NTFS give to .git
}

std::string_view why_protected(std::string_view parent, std::string_view name, FileKind kind) {
  // With it a folder becomes a repository, whose other parts may have come before.
  if (name == "head" && parent != kGitFolderKey && kind != FileKind::folder) {
    return "git takes a folder with it for a repository, with hooks and configuration";
  }
  for (const ProtectedRow& row : kRows) {
    if (row.only_files && kind == FileKind::folder) continue;
    const std::size_t slash = row.path.find('/');
    if (slash == std::string_view::npos) {
      if (matches(row.path, name)) return row.why;
    } else if (matches(row.path.substr(slash + 1), name) && matches(row.path.substr(0, slash), parent)) {
      return row.why;
    }
  }
  return {};
}

bool is_git_folder(int folder_fd) {
  const auto has = [folder_fd](const char* name) {
    return ::faccessat(folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  };
  return has("HEAD") && (has("objects") || has("commondir"));
}

}  // namespace belljar
