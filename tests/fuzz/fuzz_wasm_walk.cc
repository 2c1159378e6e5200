// Fuzzes the paths of modules: in a tree with links of every kind, what is found lies in the folder that was handed
// over.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "wasm/walk.h"

namespace {

using namespace belljar;

struct Tree {
  std::string root;
  Fd inner;

  Tree() {
    char name[] = "/tmp/fuzz-walk-XXXXXX";
    if (::mkdtemp(name) == nullptr) std::abort();
    root = std::string(name) + "/in";
    for (const char* folder : {"", "/a", "/a/b", "/a/b/c"}) ::mkdir((root + folder).c_str(), 0755);
    constexpr std::array<std::array<const char*, 2>, 8> kLinks = {{{"/etc", "abs"},
                                                                   {"..", "up"},
                                                                   {"a/b", "in"},
                                                                   {"../../..", "a/b/out"},
                                                                   {"../../in/c", "a/b/back"},
                                                                   {"loop", "loop"},
                                                                   {"a/../in", "round"},
                                                                   {"nothing", "dangling"}}};
    for (const auto& [target, link] : kLinks) (void)::symlink(target, (root + "/" + link).c_str());
    inner = Fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~Tree() { std::filesystem::remove_all(root.substr(0, root.rfind('/'))); }
};

std::string path_of(int fd) {
  std::array<char, PATH_MAX> text{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(size > 0 ? size : 0)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tree kTree;
  if (size == 0) return 0;
  const auto last = data[0] % 2 == 0 ? wasm::LastLink::follow : wasm::LastLink::keep;
  // Names of the tree for low bytes, so that paths are often ones that exist.
  constexpr std::array<const char*, 12> kWords = {"/",   "a",  "b",  "c",   "..",   ".",
                                                  "abs", "up", "in", "out", "back", "loop"};
  std::string path;
  for (const std::uint8_t byte : std::basic_string_view<std::uint8_t>(data + 1, size - 1)) {
    if (byte < 2 * kWords.size()) {
      path += kWords[byte / 2];
      if (byte % 2 == 1) path += '/';
    } else {
      path += static_cast<char>(byte);
    }
  }
  const auto place = wasm::walk(kTree.inner.get(), path, last);
  if (!place) return 0;
  if (!(path_of(place->folder.get()) + "/").starts_with(kTree.root + "/")) std::abort();
  if (place->name == ".." || place->name.empty() || place->name.find('/') != std::string::npos) std::abort();
  return 0;
}
