#include "image/image_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "image/json_reading.h"
#include "spec/checks.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kIndexEntriesMax = 1000;
constexpr std::size_t kWordsMax = 4096;  // of Env, Entrypoint and Cmd
constexpr std::string_view kOs = "linux";
constexpr std::string_view kArchitecture = "amd64";
constexpr JsonBounds kBounds = {.bytes_max = kManifestTextBytesMax, .depth_max = 64, .members_max = 10000};

constexpr std::string_view kIndexTypes[] = {"application/vnd.oci.image.index.v1+json",
                                            "application/vnd.docker.distribution.manifest.list.v2+json"};
constexpr std::string_view kManifestTypes[] = {"application/vnd.oci.image.manifest.v1+json",
                                               "application/vnd.docker.distribution.manifest.v2+json"};
constexpr std::string_view kConfigTypes[] = {"application/vnd.oci.image.config.v1+json",
                                             "application/vnd.docker.container.image.v1+json"};
// With how it is packed after it: "", "+gzip", ".gzip", "+zstd" ...; that is told from the layer itself.
constexpr std::string_view kLayerTypes[] = {
    "application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.docker.image.rootfs.diff.tar", "application/vnd.docker.image.rootfs.foreign.diff.tar"};

std::unexpected<Error> refuse(std::string why) {
  return fail(ErrorCode::bad_image, std::move(why));
}

bool is_one_of(std::string_view text, std::span<const std::string_view> known) {
  return std::ranges::find(known, text) != known.end();
}

Result<BlobName> read_blob_name(const Json& descriptor) {
  BlobName blob;
  const std::string digest = TRY(read_text(descriptor, "digest"));
  blob.digest = TRY(parse_digest(digest));
  blob.size = TRY(read_number(descriptor, "size"));
  return blob;
}

// One entry of an index, as far as a choice needs it.
struct IndexEntry {
  IndexChoice choice;
  std::string platform;  // "linux/arm64"; empty where the index does not say
  std::string tag;
};

Result<IndexEntry> read_index_entry(const Json& descriptor) {
  IndexEntry entry;
  entry.choice.blob = TRY(read_blob_name(descriptor));
  const std::string type = TRY(read_text(descriptor, "mediaType"));
  entry.choice.is_index = is_one_of(type, kIndexTypes);
  if (!entry.choice.is_index && !is_one_of(type, kManifestTypes)) entry.platform = fmt::format("({})", type);
  if (const Json* const platform = find_member(descriptor, "platform")) {
    const std::string os = TRY(read_text(*platform, "os"));
    const std::string architecture = TRY(read_text(*platform, "architecture"));
    entry.platform = fmt::format("{}/{}", os, architecture);
  }
  if (const Json* const notes = find_member(descriptor, "annotations")) {
    entry.tag = TRY(read_optional_text(*notes, "org.opencontainers.image.ref.name"));
  }
  return entry;
}

std::string listed(const std::vector<IndexEntry>& entries) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (const IndexEntry& entry : entries) {
    if (&entry - entries.data() == kShown) return text + " ...";
    if (!text.empty()) text += ", ";
    text += one_line(!entry.tag.empty() ? entry.tag : !entry.platform.empty() ? entry.platform : "one without a name");
  }
  return text;
}

bool is_runnable_here(const IndexEntry& entry) {
  return entry.platform.empty() || entry.platform == fmt::format("{}/{}", kOs, kArchitecture);
}

Result<void> check_platform(const Json& config) {
  const std::string os = TRY(read_optional_text(config, "os"));
  const std::string architecture = TRY(read_optional_text(config, "architecture"));
  if ((os.empty() || os == kOs) && (architecture.empty() || architecture == kArchitecture)) return {};
  return refuse(fmt::format("the image is for {}/{}, and this machine is {}/{}", one_line(os), one_line(architecture),
                            kOs, kArchitecture));
}

Result<std::vector<EnvironmentVariable>> read_environment(const Json& config) {
  std::vector<EnvironmentVariable> environment;
  for (const std::string& text : TRY(read_optional_texts(config, "Env", kWordsMax))) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return refuse(fmt::format("Env: {} has no value", quote(text)));
    EnvironmentVariable variable{text.substr(0, equals), text.substr(equals + 1)};
    if (const auto checked = check_environment_variable(variable, "Env"); !checked) {
      return refuse(checked.error().message);
    }
    environment.push_back(std::move(variable));
  }
  return environment;
}

Result<std::vector<std::string>> read_words(const Json& config, std::string_view name) {
  auto words = TRY(read_optional_texts(config, name, kWordsMax));
  for (const std::string& word : words) {
    if (const auto checked = check_argument(word, name); !checked) return refuse(checked.error().message);
  }
  return words;
}

Result<ImageConfig> read_image_config(const Json& config) {
  ImageConfig image;
  image.environment = TRY(read_environment(config));
  image.entrypoint = TRY(read_words(config, "Entrypoint"));
  image.command = TRY(read_words(config, "Cmd"));
  image.user = TRY(read_optional_text(config, "User"));
  std::string folder = TRY(read_optional_text(config, "WorkingDir"));
  if (folder.empty()) return image;
  if (folder[0] != '/') folder.insert(0, 1, '/');
  auto normal = normal_inside_path(folder, "WorkingDir");
  if (!normal) return refuse(normal.error().message);
  image.working_folder = std::move(*normal);
  return image;
}

}  // namespace

Result<std::string> parse_digest(std::string_view text) {
  constexpr std::string_view kAlgorithm = "sha256:";
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.starts_with(kAlgorithm)) {
    const std::string_view digits = text.substr(kAlgorithm.size());
    if (digits.size() == 64 && std::ranges::all_of(digits, is_digit)) return std::string(digits);
  }
  return refuse(fmt::format("{} is not a digest of the form sha256:64 hexadecimal digits", quote(text)));
}

Result<IndexChoice> choose_from_index(std::string_view text) {
  const Json index = TRY(read_json_object(text, "the image's index", kBounds));
  std::vector<IndexEntry> runnable;
  std::vector<IndexEntry> others;
  const Json& manifests = *TRY(read_array(index, "manifests", kIndexEntriesMax));
  for (const Json& descriptor : manifests) {
    IndexEntry entry = TRY(read_index_entry(descriptor));
    if (entry.platform == "unknown/unknown") continue;  // an attestation
    if (!is_runnable_here(entry)) {
      others.push_back(std::move(entry));
      continue;
    }
    const auto is_same = [&entry](const IndexEntry& other) {
      return other.choice.blob == entry.choice.blob;  // one image with two tags
    };
    if (std::ranges::none_of(runnable, is_same)) runnable.push_back(std::move(entry));
  }
  if (runnable.size() > 1) {
    return refuse(fmt::format("there is more than one image in it ({}); save one alone", listed(runnable)));
  }
  if (!runnable.empty()) return runnable.front().choice;
  if (others.empty()) return refuse("there is no image in its index");
  return refuse(fmt::format("there is no image for {}/{} in it, but for {}", kOs, kArchitecture, listed(others)));
}

Result<OciManifest> parse_oci_manifest(std::string_view text) {
  const Json json = TRY(read_json_object(text, "the image's manifest", kBounds));
  if (TRY(read_number(json, "schemaVersion")) != 2) return refuse("the manifest's schemaVersion is not 2");
  OciManifest manifest;
  const Json& config = *TRY(read_object(json, "config"));
  if (const std::string type = TRY(read_text(config, "mediaType")); !is_one_of(type, kConfigTypes)) {
    return refuse(fmt::format("this is no image for containers, but something of the type {}", quote(type)));
  }
  manifest.config = TRY(read_blob_name(config));
  const Json& layers = *TRY(read_array(json, "layers", kLayersMax));
  for (const Json& layer : layers) {
    const std::string type = TRY(read_text(layer, "mediaType"));
    const bool is_known =
        std::ranges::any_of(kLayerTypes, [&type](std::string_view known) { return type.starts_with(known); });
    if (!is_known) return refuse(fmt::format("a layer of the type {}, which is not known", quote(type)));
    manifest.layers.push_back(TRY(read_blob_name(layer)));
  }
  return manifest;
}

Result<DockerManifest> parse_docker_manifest(std::string_view text) {
  constexpr std::string_view kWhat = "manifest.json";
  const auto json = parse_json(text, kBounds);
  if (!json) {
    return refuse(fmt::format("{}: line {}, column {}: {}", kWhat, json.error().line, json.error().column,
                              one_line(json.error().what)));
  }
  if (!json->is_array()) return refuse(fmt::format("{} is not a list", kWhat));
  if (json->size() != 1) {
    return refuse(fmt::format("there are {} images in it; save one alone", json->size()));
  }
  DockerManifest manifest;
  manifest.config = TRY(read_text(json->front(), "Config"));
  manifest.layers = TRY(read_optional_texts(json->front(), "Layers", kLayersMax));
  return manifest;
}

Result<OciConfig> parse_oci_config(std::string_view text) {
  const Json json = TRY(read_json_object(text, "the image's configuration", kBounds));
  TRY_VOID(check_platform(json));
  OciConfig parsed;
  if (const Json* const config = find_member(json, "config")) parsed.config = TRY(read_image_config(*config));
  const Json& rootfs = *TRY(read_object(json, "rootfs"));
  for (const std::string& digest : TRY(read_optional_texts(rootfs, "diff_ids", kLayersMax))) {
    parsed.diff_ids.push_back(TRY(parse_digest(digest)));
  }
  return parsed;
}

}  // namespace belljar
