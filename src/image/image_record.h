// What the store remembers of an image.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "image/tree_writer.h"
#include "spec/sandbox_spec.h"

namespace belljar {

// What an image wants its programs to have where the caller says nothing.
struct ImageConfig {
  std::vector<EnvironmentVariable> environment;
  std::string working_folder;  // absolute; empty: none named
  std::string user;            // as written: "www-data", "1000:1000"; empty: root
  unsigned uid = 0;            // what `user` means in the image
  unsigned gid = 0;
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;

  bool operator==(const ImageConfig&) const = default;
};

// A name at the top of the image's tree.
struct ImagePart {
  enum class Kind {
    folder,        // holds something
    empty_folder,  // a place to mount at
    file,
    link,
  };
  std::string name;
  Kind kind = Kind::folder;
  std::string target;  // of a link

  bool operator==(const ImagePart&) const = default;
};

struct ImageLayer {
  std::string digest;   // of the layer as it was saved; 64 hexadecimal digits
  std::string diff_id;  // of the unpacked layer
  std::uint64_t size = 0;

  bool operator==(const ImageLayer&) const = default;
};

struct ImageRecord {
  std::string tree;             // names the unpacked tree; follows from the layers' digests
  std::string source;           // the path that it was loaded from
  std::string form;             // "OCI archive" ...
  std::string manifest_digest;  // empty where the form has none
  std::string config_digest;
  std::vector<ImageLayer> layers;
  ImageConfig config;
  std::vector<ImagePart> parts;
  TreeCounts counts;
  std::int64_t loaded_s = 0;  // seconds since 1970
  std::string identity;       // of the source at that time, for images that are named by a path

  bool operator==(const ImageRecord&) const = default;
};

inline constexpr std::size_t kRecordBytesMax = std::size_t{2} << 20;

Json record_as_json(const ImageRecord& record);
std::string record_to_json(const ImageRecord& record);

// Errors: bad_image, for a record that was not written by record_to_json().
Result<ImageRecord> record_from_json(std::string_view text);

// Parts of it, which the reports of confined processes have too; read_...() want a member of that name in `object`.
Json parts_to_json(const std::vector<ImagePart>& parts);
Result<std::vector<ImagePart>> read_parts(const Json& object);
Json counts_to_json(const TreeCounts& counts);
Result<TreeCounts> read_counts(const Json& object);

}  // namespace belljar
