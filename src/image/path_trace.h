// Follows a path as the kernel would (path_resolution(7)), and remembers every node on the way.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

namespace belljar {

// Something that the walk stood on: a folder, a link that it followed, or what it ended at.
struct TraceNode {
  std::string path;  // relative to the root, no links in it: "usr/bin/awk"
  struct stat status;
  std::string link_text;  // of a link
};

enum class TraceEnd {
  found,    // nodes.back() is what the path names (never a link)
  missing,  // a component does not exist, or is not a folder though more follows
  loop,     // more links than the kernel would follow
};

struct PathTrace {
  TraceEnd end = TraceEnd::found;
  std::vector<TraceNode> nodes;  // in order; empty when the path is the root itself
};

// `root_fd` is what "/" means; a ".." at the root stays there. Absolute and relative paths both start at the root.
PathTrace trace_path(int root_fd, std::string_view path);

// The text of a link (readlinkat(2)); empty on any error.
std::string read_link_at(int folder_fd, const char* path);

// True for `folder` itself and for what lies below it; both without a trailing slash.
bool is_within(std::string_view path, std::string_view folder);

}  // namespace belljar
