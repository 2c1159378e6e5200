#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <climits>

#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/execute.h"
#include "cli/run_command.h"
#include "image/image_loader.h"
#include "image/image_store.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kShortDigest = 12;

std::string size_text(std::uint64_t bytes) {
  if (bytes < kMiB) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / static_cast<double>(kKiB));
  if (bytes < kGiB) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / static_cast<double>(kMiB));
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
}

std::string time_text(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string digest_text(const std::string& digest) {
  return digest.empty() ? "" : "sha256:" + digest;
}

std::string words_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += quote(word);
  }
  return text.empty() ? "none" : text;
}

// What was left out of the tree, for people; empty when nothing was.
std::string dropped_text(const TreeCounts& counts) {
  std::string text;
  const auto add = [&text](std::uint64_t count, std::string_view what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(counts.special_files, "devices, FIFOs or sockets");
  add(counts.set_id_bits, "setuid or setgid bits");
  add(counts.attributes, "entries' extended attributes");
  add(counts.foreign_ids, "owners beyond 65535");
  return text;
}

Json image_json(const std::string& name, const ImageRecord& record) {
  Json layers = Json::array();
  for (const ImageLayer& layer : record.layers) {
    layers.push_back(
        {{"digest", digest_text(layer.digest)}, {"diff_id", digest_text(layer.diff_id)}, {"size_bytes", layer.size}});
  }
  Json environment = Json::array();
  for (const auto& variable : record.config.environment) environment.push_back(variable.name + '=' + variable.value);
  return {{"name", name},
          {"tree", record.tree},
          {"form", record.form},
          {"source", record.source},
          {"loaded_at", time_text(record.loaded_s)},
          {"manifest_digest", digest_text(record.manifest_digest)},
          {"config_digest", digest_text(record.config_digest)},
          {"layers", std::move(layers)},
          {"entries", record.counts.entries},
          {"size_bytes", record.counts.bytes},
          {"left_out",
           {{"special_files", record.counts.special_files},
            {"set_id_bits", record.counts.set_id_bits},
            {"attributes", record.counts.attributes},
            {"foreign_ids", record.counts.foreign_ids}}},
          {"config",
           {{"env", std::move(environment)},
            {"entrypoint", record.config.entrypoint},
            {"cmd", record.config.command},
            {"workdir", record.config.working_folder},
            {"user", record.config.user},
            {"uid", record.config.uid},
            {"gid", record.config.gid}}}};
}

Json listed_json(const ListedImage& image) {
  if (!image.damage.empty()) return {{"name", image.name}, {"damage", one_line(image.damage)}};
  Json row = image_json(image.name, image.record);
  row["in_use"] = image.is_in_use;
  return row;
}

Result<std::string> shown(const Json& json) {
  return dump_json(json) + "\n";
}

Result<std::string> load(const ImageRequest& request) {
  ImageStore store = TRY(ImageStore::open(MissingStore::is_made));
  const LoadLimits limits{.entries_max = request.entries_max,
                          .bytes_max = request.bytes_max,
                          .time_max = std::chrono::milliseconds(request.time_ms_max)};
  const ImageRecord record = TRY(load_image(store, request.name, request.source, limits));
  if (request.json) return shown(image_json(request.name, record));
  const std::string dropped = dropped_text(record.counts);
  return fmt::format("loaded {}: {}, {} layer{}, {} entries, {}\n{}", request.name, record.form, record.layers.size(),
                     record.layers.size() == 1 ? "" : "s", record.counts.entries, size_text(record.counts.bytes),
                     dropped.empty() ? "" : fmt::format("left out: {}\n", dropped));
}

Result<std::string> list(const ImageRequest& request) {
  const ImageStore store = TRY(ImageStore::open(MissingStore::is_empty));
  Json json = Json::array();
  std::string text = fmt::format("{:<24} {:<14} {:>10} {:<23} {}\n", "NAME", "TREE", "SIZE", "LOADED", "IN USE");
  for (const ListedImage& image : store.list()) {
    json.push_back(listed_json(image));
    const std::string name = one_line(image.name, PATH_MAX);
    if (image.damage.empty()) {
      text += fmt::format("{:<24} {:<14} {:>10} {:<23} {}\n", name, image.record.tree.substr(0, kShortDigest),
                          size_text(image.record.counts.bytes), time_text(image.record.loaded_s),
                          image.is_in_use ? "yes" : "no");
    } else {
      text += fmt::format("{:<24} damaged: {}\n", name, one_line(image.damage));
    }
  }
  return request.json ? shown({{"images", std::move(json)}}) : Result<std::string>(text);
}

std::string image_text(const ListedImage& image) {
  const ImageRecord& record = image.record;
  const ImageConfig& config = record.config;
  std::string text;
  const auto line = [&text](std::string_view what, std::string_view value) {
    text += fmt::format("{:<12} {}\n", what, one_line(value));
  };
  line("name", image.name);
  line("loaded", fmt::format("{} from {} ({})", time_text(record.loaded_s), record.source, record.form));
  line("size", fmt::format("{} in {} entries", size_text(record.counts.bytes), record.counts.entries));
  line("in use", image.is_in_use ? "yes" : "no");
  line("tree", record.tree);
  if (!record.manifest_digest.empty()) line("manifest", digest_text(record.manifest_digest));
  if (!record.config_digest.empty()) line("config", digest_text(record.config_digest));
  for (const ImageLayer& layer : record.layers) {
    line("layer", fmt::format("{} ({})", digest_text(layer.digest), size_text(layer.size)));
  }
  line("user", fmt::format("{} (uid {}, gid {})", config.user.empty() ? "root" : config.user, config.uid, config.gid));
  line("workdir", config.working_folder.empty() ? "none" : config.working_folder);
  line("entrypoint", words_text(config.entrypoint));
  line("cmd", words_text(config.command));
  for (const auto& variable : config.environment) line("env", variable.name + '=' + variable.value);
  if (const std::string dropped = dropped_text(record.counts); !dropped.empty()) line("left out", dropped);
  return text;
}

Result<std::string> inspect(const ImageRequest& request) {
  const ImageStore store = TRY(ImageStore::open(MissingStore::is_empty));
  const ListedImage image = TRY(store.find(request.name));
  if (!image.damage.empty()) return fail(ErrorCode::bad_image, image.damage);
  return request.json ? shown(listed_json(image)) : image_text(image);
}

Result<std::string> remove(const ImageRequest& request) {
  ImageStore store = TRY(ImageStore::open(MissingStore::is_empty));
  TRY_VOID(store.remove(request.name));
  return request.json ? shown({{"removed", request.name}})
                      : fmt::format("removed {}\n", one_line(request.name, PATH_MAX));
}

Result<std::string> collect_garbage(const ImageRequest& request) {
  ImageStore store = TRY(ImageStore::open(MissingStore::is_empty));
  const std::uint64_t removed = TRY(store.collect_garbage());
  if (request.json) return shown({{"removed", removed}});
  return fmt::format("removed {} thing{} that nothing leads to\n", removed, removed == 1 ? "" : "s");
}

Result<std::string> carry_out(const ImageRequest& request) {
  switch (request.verb) {
    case ImageVerb::load:
      return load(request);
    case ImageVerb::ls:
      return list(request);
    case ImageVerb::inspect:
      return inspect(request);
    case ImageVerb::rm:
      return remove(request);
    case ImageVerb::gc:
      return collect_garbage(request);
  }
  return fail(ErrorCode::internal, "an image command without a body");
}

}  // namespace

int execute_image(const ImageRequest& request) {
  const auto text = carry_out(request);
  if (!text) return report_error(text.error(), request.json);
  return print(*text);
}

}  // namespace belljar
