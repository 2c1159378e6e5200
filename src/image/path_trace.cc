#include "image/path_trace.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

namespace belljar {
namespace {

constexpr int kLinksMax = 40;  // MAXSYMLINKS of the kernel

// Puts the components of `path` on the stack, the first one on top.
void push_components(std::vector<std::string>& stack, std::string_view path) {
  std::vector<std::string> components;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    if (!component.empty() && component != ".") components.emplace_back(component);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  stack.insert(stack.end(), components.rbegin(), components.rend());
}

}  // namespace

PathTrace trace_path(int root_fd, std::string_view path) {
  PathTrace trace;
  std::vector<std::string> todo;
  push_components(todo, path);
  std::string current;  // a folder without links in its path
  int links = 0;
  while (!todo.empty()) {
    const std::string component = std::move(todo.back());
    todo.pop_back();
    if (component == "..") {
      const std::size_t slash = current.rfind('/');
      current.resize(slash == std::string::npos ? 0 : slash);
      continue;
    }
    TraceNode node{.path = current, .status = {}, .link_text = {}};
    if (!current.empty()) node.path += '/';
    node.path += component;
    if (::fstatat(root_fd, node.path.c_str(), &node.status, AT_SYMLINK_NOFOLLOW) != 0) {
      trace.end = TraceEnd::missing;
      return trace;
    }
    if (S_ISLNK(node.status.st_mode)) {
      if (++links > kLinksMax) {
        trace.end = TraceEnd::loop;
        return trace;
      }
      node.link_text = read_link_at(root_fd, node.path.c_str());
      if (node.link_text.empty()) {
        trace.end = TraceEnd::missing;
        return trace;
      }
      if (node.link_text.front() == '/') current.clear();
      push_components(todo, node.link_text);
    } else {
      if (!S_ISDIR(node.status.st_mode) && !todo.empty()) {
        trace.end = TraceEnd::missing;
        return trace;
      }
      current = node.path;
    }
    trace.nodes.push_back(std::move(node));
  }
  // A path that ends in ".." or in a link to such ends at a folder that was not the last one visited.
  if (current.empty()) {
    trace.nodes.clear();
  } else if (trace.nodes.back().path != current) {
    TraceNode node{.path = current, .status = {}, .link_text = {}};
    if (::fstatat(root_fd, current.c_str(), &node.status, AT_SYMLINK_NOFOLLOW) != 0) trace.end = TraceEnd::missing;
    trace.nodes.push_back(std::move(node));
  }
  return trace;
}

std::string read_link_at(int folder_fd, const char* path) {
  char text[PATH_MAX];
  const ssize_t length = ::readlinkat(folder_fd, path, text, sizeof text);
  if (length <= 0 || length == sizeof text) return {};
  return {text, static_cast<std::size_t>(length)};
}

bool is_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace belljar
