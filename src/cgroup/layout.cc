#include "cgroup/layout.h"

#include <optional>
#include <vector>

namespace belljar {
namespace {

// Takes the text up to `separator` off the front of `rest`.
std::string_view take_word(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return word;
}

bool has_word(std::string_view words, std::string_view wanted) {
  while (!words.empty()) {
    if (take_word(words, ',') == wanted) return true;
  }
  return false;
}

// mountinfo writes space, tab, newline and backslash as a backslash and three octal digits.
std::string unescape(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

enum class CgroupKind { v1, v2 };

struct CgroupMount {
  CgroupKind kind;
  std::string root;   // the group that the mount shows at its top
  std::string point;  // where it is mounted
  bool writable;
  ControllerSet controllers;  // of a v1 hierarchy
};

// "36 31 0:33 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory"
std::optional<CgroupMount> parse_mount(std::string_view line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  std::string_view tail = line.substr(dash + 3);
  const std::string_view type = take_word(tail, ' ');
  if (type != "cgroup" && type != "cgroup2") return std::nullopt;
  take_word(tail, ' ');  // the source

  std::string_view head = line.substr(0, dash);
  for (int skipped = 0; skipped < 3; ++skipped) take_word(head, ' ');  // mount id, parent id, device
  CgroupMount mount;
  mount.kind = type == "cgroup2" ? CgroupKind::v2 : CgroupKind::v1;
  mount.root = unescape(take_word(head, ' '));
  mount.point = unescape(take_word(head, ' '));
  mount.writable = !has_word(take_word(head, ' '), "ro") && !has_word(tail, "ro");
  mount.controllers = parse_controllers(tail, ',');
  if (!mount.root.starts_with('/') || !mount.point.starts_with('/')) return std::nullopt;
  return mount;
}

struct OwnGroup {
  bool is_v2;
  ControllerSet controllers;  // of a v1 hierarchy
  std::string_view path;      // from the top of the hierarchy, or of the cgroup namespace
};

// "4:memory:/a/b" or "0::/a/b". The path may itself hold colons.
std::optional<OwnGroup> parse_own_group(std::string_view line) {
  const std::string_view number = take_word(line, ':');
  const std::string_view controllers = take_word(line, ':');
  if (!line.starts_with('/')) return std::nullopt;
  return OwnGroup{number == "0" && controllers.empty(), parse_controllers(controllers, ','), line};
}

// The folder of the group `path` as seen through `mount`, or nothing when it lies outside. A ".." comes from a cgroup
// namespace that is rooted below: what it stands for can't be known from here.
std::optional<std::string> seen_through(const CgroupMount& mount, std::string_view path) {
  if (path.starts_with("/..") || mount.root.starts_with("/..")) return std::nullopt;
  if (mount.root != "/") {
    if (!path.starts_with(mount.root)) return std::nullopt;
    path.remove_prefix(mount.root.size());
    if (!path.empty() && !path.starts_with('/')) return std::nullopt;
  }
  if (path == "/") path = {};
  return mount.point + std::string(path);
}

// Enters what `mount` shows of `group` into the layout; the first mount that shows a group is kept.
void add_group(CgroupLayout& layout, const CgroupMount& mount, const OwnGroup& group) {
  if (group.is_v2 != (mount.kind == CgroupKind::v2)) return;
  ControllerSet shared;
  for (std::size_t i = 0; i < kControllerCount; ++i) {
    const auto controller = static_cast<Controller>(i);
    if (group.controllers.has(controller) && mount.controllers.has(controller)) shared.add(controller);
  }
  if (!group.is_v2 && shared.size() == 0) return;
  const auto folder = seen_through(mount, group.path);
  if (!folder) return;
  if (!mount.writable) {
    layout.read_only_mounts = true;
    return;
  }
  if (group.is_v2 && layout.v2_group.empty()) {
    layout.v2_group = *folder;
    layout.v2_mount = mount.point;
  }
  for (std::size_t i = 0; i < kControllerCount; ++i) {
    if (shared.has(static_cast<Controller>(i)) && layout.v1_groups[i].empty()) layout.v1_groups[i] = *folder;
  }
}

}  // namespace

ControllerSet parse_controllers(std::string_view words, char separator) {
  ControllerSet set;
  while (!words.empty()) {
    const std::string_view word = take_word(words, separator);
    for (std::size_t i = 0; i < kControllerCount; ++i) {
      if (word == kControllerNames[i]) set.add(static_cast<Controller>(i));
    }
  }
  return set;
}

CgroupLayout find_layout(std::string_view mountinfo, std::string_view own_groups) {
  std::vector<OwnGroup> groups;
  while (!own_groups.empty()) {
    if (const auto group = parse_own_group(take_word(own_groups, '\n'))) groups.push_back(*group);
  }

  CgroupLayout layout;
  while (!mountinfo.empty()) {
    const auto mount = parse_mount(take_word(mountinfo, '\n'));
    if (!mount) continue;
    for (const OwnGroup& group : groups) add_group(layout, *mount, group);
  }
  return layout;
}

}  // namespace belljar
