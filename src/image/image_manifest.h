// The JSON documents of saved images: OCI index, manifest and configuration (image-spec), and the manifest.json of
// `docker save`. Pure: text in, checked values out. The texts are hostile; every function refuses what it does not
// understand with bad_image and one line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/image_record.h"

namespace belljar {

inline constexpr std::size_t kManifestTextBytesMax = std::size_t{4} << 20;
inline constexpr std::size_t kLayersMax = 256;

// "sha256:" and 64 lower-case hexadecimal digits, the only kind of digest that is taken. Returns the digits.
Result<std::string> parse_digest(std::string_view text);

// A document or layer named by its content.
struct BlobName {
  std::string digest;  // 64 hexadecimal digits
  std::uint64_t size = 0;

  bool operator==(const BlobName&) const = default;
};

// What an index leads to: a manifest, or another index.
struct IndexChoice {
  BlobName blob;
  bool is_index = false;
};

// The one entry of an index that this machine can run; what is no image (attestations) is passed over. Refused with a
// list when there are several or none.
Result<IndexChoice> choose_from_index(std::string_view text);

struct OciManifest {
  BlobName config;
  std::vector<BlobName> layers;  // lowest first
};
Result<OciManifest> parse_oci_manifest(std::string_view text);

struct DockerManifest {
  std::string config;               // name of a member of the archive
  std::vector<std::string> layers;  // the same, lowest first
};
Result<DockerManifest> parse_docker_manifest(std::string_view text);

struct OciConfig {
  ImageConfig config;                 // uid and gid are not resolved yet
  std::vector<std::string> diff_ids;  // 64 hexadecimal digits each, lowest layer first
};
Result<OciConfig> parse_oci_config(std::string_view text);

}  // namespace belljar
