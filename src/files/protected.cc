#include "files/protected.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/unseen.h"
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

// Of folders in which a repository keeps refs and their logs; no name is like it.
constexpr std::string_view kRefsKey = ".git/refs";

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
  // The streams of a file or folder that NTFS has under its own name too.
  key.erase(std::min({key.find("::$"), key.find(":$i30:$"), key.size()}));
  key.erase(key.find_last_not_of(". ") + 1);
  return key == "git~1" ? ".git" : key;  // the short name that FAT and NTFS give to .git
}

// No part of a ref's name begins with a dot, so that a folder below which does is as anywhere else.
std::string folder_key(std::string_view parent, std::string_view name) {
  std::string key = name_key(name);
  const bool is_first = parent == kGitFolderKey && (key == "refs" || key == "logs");
  const bool is_below = parent == kRefsKey && !key.starts_with('.');
  return is_first || is_below ? std::string(kRefsKey) : key;
}

std::string_view why_protected(std::string_view parent, std::string_view name, FileKind kind) {
  // With these a folder becomes a repository, whose other parts may have come before. Among refs and their logs HEAD is
  // an everyday name, and what else a repository must have is none.
  const bool makes_repository = parent == kRefsKey
                                    ? name == "objects" || name == "commondir"
                                    : name == "head" && parent != kGitFolderKey && kind != FileKind::folder;
  if (makes_repository) return "git takes a folder with it for a repository, with hooks and configuration";
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
