// The documents of saved images: each text is refused, or gives values within their bounds.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "image/image_manifest.h"

namespace {

void check_digest(const std::string& digest) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (digest.size() != 64 || !std::ranges::all_of(digest, is_digit)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto digest = parse_digest(text)) check_digest(*digest);
  if (const auto choice = choose_from_index(text)) check_digest(choice->blob.digest);
  if (const auto manifest = parse_oci_manifest(text)) {
    check_digest(manifest->config.digest);
    if (manifest->layers.size() > kLayersMax) std::abort();
    for (const BlobName& layer : manifest->layers) check_digest(layer.digest);
  }
  if (const auto manifest = parse_docker_manifest(text)) {
    if (manifest->layers.size() > kLayersMax) std::abort();
  }
  if (const auto config = parse_oci_config(text)) {
    for (const std::string& diff_id : config->diff_ids) check_digest(diff_id);
    for (const auto& variable : config->config.environment) {
      if (variable.name.empty() || variable.name.find('\0') != std::string::npos) std::abort();
    }
  }
  return 0;
}
