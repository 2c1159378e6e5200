#include "image/image_record.h"

#include <algorithm>
#include <array>

#include "image/image_manifest.h"
#include "image/json_reading.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::uint64_t kRecordFormat = 1;
constexpr std::size_t kListMax = 10000;
constexpr JsonBounds kBounds = {.bytes_max = kRecordBytesMax, .depth_max = 16, .members_max = 1000};

constexpr std::array<std::string_view, 4> kPartKinds = {"folder", "empty_folder", "file", "link"};

struct CountField {
  std::string_view name;
  std::uint64_t TreeCounts::* field;
};
constexpr CountField kCountFields[] = {
    {"entries", &TreeCounts::entries},
    {"bytes", &TreeCounts::bytes},
    {"special_files", &TreeCounts::special_files},
    {"set_id_bits", &TreeCounts::set_id_bits},
    {"attributes", &TreeCounts::attributes},
    {"foreign_ids", &TreeCounts::foreign_ids},
};

Json config_to_json(const ImageConfig& config) {
  Json environment = Json::array();
  for (const EnvironmentVariable& variable : config.environment) {
    environment.push_back(Json::array({variable.name, variable.value}));
  }
  return {{"environment", std::move(environment)},
          {"working_folder", config.working_folder},
          {"user", config.user},
          {"uid", config.uid},
          {"gid", config.gid},
          {"entrypoint", config.entrypoint},
          {"command", config.command}};
}

Result<ImageConfig> config_from_json(const Json& json) {
  ImageConfig config;
  const Json& environment = *TRY(read_array(json, "environment", kListMax));
  for (const Json& pair : environment) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      return fail(ErrorCode::bad_image, "environment is not a list of names and values");
    }
    config.environment.push_back({pair[0].get_ref<const std::string&>(), pair[1].get_ref<const std::string&>()});
  }
  config.working_folder = TRY(read_text(json, "working_folder"));
  config.user = TRY(read_text(json, "user"));
  for (const auto& [name, field] : {std::pair{"uid", &config.uid}, std::pair{"gid", &config.gid}}) {
    const std::uint64_t id = TRY(read_number(json, name));
    if (id > kImageIdMax) return fail(ErrorCode::bad_image, "a user or group id is out of range");
    *field = static_cast<unsigned>(id);
  }
  config.entrypoint = TRY(read_optional_texts(json, "entrypoint", kListMax));
  config.command = TRY(read_optional_texts(json, "command", kListMax));
  return config;
}

Result<ImagePart> part_from_json(const Json& json) {
  ImagePart part;
  part.name = TRY(read_text(json, "name"));
  const std::string kind = TRY(read_text(json, "kind"));
  const auto found = std::ranges::find(kPartKinds, kind);
  const bool is_name = !part.name.empty() && part.name != "." && part.name != ".." &&
                       part.name.find('/') == std::string::npos && part.name.find('\0') == std::string::npos;
  if (found == kPartKinds.end() || !is_name) return fail(ErrorCode::bad_image, "a part of the tree has no sound name");
  part.kind = static_cast<ImagePart::Kind>(found - kPartKinds.begin());
  part.target = TRY(read_text(json, "target"));
  return part;
}

Result<ImageLayer> layer_from_json(const Json& json) {
  ImageLayer layer;
  layer.digest = TRY(read_text(json, "digest"));
  layer.diff_id = TRY(read_text(json, "diff_id"));
  layer.size = TRY(read_number(json, "size"));
  return layer;
}

}  // namespace

Json parts_to_json(const std::vector<ImagePart>& parts) {
  Json json = Json::array();
  for (const ImagePart& part : parts) {
    json.push_back(
        {{"name", part.name}, {"kind", kPartKinds[static_cast<std::size_t>(part.kind)]}, {"target", part.target}});
  }
  return json;
}

Result<std::vector<ImagePart>> read_parts(const Json& object) {
  std::vector<ImagePart> parts;
  const Json& json = *TRY(read_array(object, "parts", kListMax));
  for (const Json& part : json) parts.push_back(TRY(part_from_json(part)));
  return parts;
}

Json counts_to_json(const TreeCounts& counts) {
  Json json = Json::object();
  for (const CountField& row : kCountFields) json[row.name] = counts.*row.field;
  return json;
}

Result<TreeCounts> read_counts(const Json& object) {
  TreeCounts counts;
  const Json& json = *TRY(read_object(object, "counts"));
  for (const CountField& row : kCountFields) counts.*row.field = TRY(read_number(json, row.name));
  return counts;
}

Json record_as_json(const ImageRecord& record) {
  Json layers = Json::array();
  for (const ImageLayer& layer : record.layers) {
    layers.push_back({{"digest", layer.digest}, {"diff_id", layer.diff_id}, {"size", layer.size}});
  }
  return {{"format", kRecordFormat},
          {"tree", record.tree},
          {"source", record.source},
          {"form", record.form},
          {"manifest_digest", record.manifest_digest},
          {"config_digest", record.config_digest},
          {"layers", std::move(layers)},
          {"config", config_to_json(record.config)},
          {"parts", parts_to_json(record.parts)},
          {"counts", counts_to_json(record.counts)},
          {"loaded_s", static_cast<std::uint64_t>(std::max<std::int64_t>(record.loaded_s, 0))},
          {"identity", record.identity}};
}

std::string record_to_json(const ImageRecord& record) {
  return dump_json(record_as_json(record));
}

Result<ImageRecord> record_from_json(std::string_view text) {
  const Json json = TRY(read_json_object(text, "the image's record", kBounds));
  if (TRY(read_number(json, "format")) != kRecordFormat) {
    return fail(ErrorCode::bad_image, "it was loaded by another version of Belljar");
  }
  ImageRecord record;
  record.tree = TRY(read_text(json, "tree"));
  if (!parse_digest("sha256:" + record.tree)) return fail(ErrorCode::bad_image, "the record's tree is no digest");
  record.source = TRY(read_text(json, "source"));
  record.form = TRY(read_text(json, "form"));
  record.manifest_digest = TRY(read_text(json, "manifest_digest"));
  record.config_digest = TRY(read_text(json, "config_digest"));
  const Json& layers = *TRY(read_array(json, "layers", kLayersMax));
  for (const Json& layer : layers) record.layers.push_back(TRY(layer_from_json(layer)));
  const Json& config = *TRY(read_object(json, "config"));
  record.config = TRY(config_from_json(config));
  record.parts = TRY(read_parts(json));
  record.counts = TRY(read_counts(json));
  record.loaded_s = static_cast<std::int64_t>(TRY(read_number(json, "loaded_s")) & INT64_MAX);
  record.identity = TRY(read_text(json, "identity"));
  return record;
}

}  // namespace belljar
