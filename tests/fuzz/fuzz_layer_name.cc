// Names of entries: whatever is written, the path stays below the root.
#include <cstdint>
#include <cstdlib>

#include "image/layer_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar;
  const std::string_view written(reinterpret_cast<const char*>(data), size);
  for (const Whiteouts whiteouts : {Whiteouts::applied, Whiteouts::literal}) {
    const auto name = read_layer_name(written, whiteouts);
    if (!name) continue;
    const std::string& path = name->path;
    if (path.empty()) {
      if (name->kind == LayerName::Kind::entry || name->kind == LayerName::Kind::whiteout) std::abort();
      continue;
    }
    const std::string guarded = "/" + path + "/";
    for (const char* const bad : {"//", "/./", "/../"}) {
      if (guarded.find(bad) != std::string::npos) std::abort();
    }
    if (path.find('\0') != std::string::npos || path.size() > kEntryPathBytesMax) std::abort();
    const bool is_removal = name->kind == LayerName::Kind::whiteout || name->kind == LayerName::Kind::opaque;
    if (is_removal && whiteouts == Whiteouts::literal) std::abort();
  }
  return 0;
}
