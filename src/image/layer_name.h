// The names of entries in image layers: what each of them means in the tree that is unpacked. (OCI image specification,
// layer.md, "Whiteouts".)
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar {

inline constexpr std::size_t kEntryPathBytesMax = 4095;
inline constexpr std::size_t kEntryNameBytesMax = 255;
inline constexpr std::size_t kEntryDepthMax = 128;  // parts of a name: the folders, and what is in the last

// Where ".wh.NAME" stands for the removal of NAME, and where it is a name as any other.
enum class Whiteouts { applied, literal };

struct LayerName {
  enum class Kind {
    entry,     // `path` is what the entry makes
    root,      // the root folder itself
    whiteout,  // `path` of the layers below is removed
    opaque,    // everything below the folder `path` ("": the root) that comes from the layers below is removed
    ignored,   // a mark of aufs that means nothing outside of it
  };
  Kind kind = Kind::entry;
  std::string path;  // relative to the root, without "." and "..", no "/" at its ends: "usr/bin/awk"
};

// Reads the name of an entry as it is written in the layer: "./usr/bin/awk", "/usr/bin/", "etc/.wh.passwd". Whatever
// the name, `path` stays below the root. Errors: bad_image, for a name with "..", for one that is too long or too deep,
// and for whiteouts of nothing.
Result<LayerName> read_layer_name(std::string_view written, Whiteouts whiteouts);

}  // namespace belljar
