#include "image/image_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/sha256.h"
#include "base/utf8.h"
#include "host/open_path.h"
#include "image/json_reading.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr int kIndexDepthMax = 4;  // of indexes in indexes
constexpr int kLinksMax = 8;

std::unexpected<Error> refuse(std::string why) {
  return fail(ErrorCode::bad_image, std::move(why));
}

std::string blob_path(std::string_view digest) {
  return fmt::format("blobs/sha256/{}", digest);
}

// The name that a link in the member `from` leads to; empty when it leads out of the archive.
std::string link_target(const std::string& from, const std::string& link) {
  if (link.starts_with('/')) return link.substr(1);  // a hard link
  std::string path = from.substr(0, from.rfind('/') == std::string::npos ? 0 : from.rfind('/'));
  for (std::string_view rest = link; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (path.empty()) return "";
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    } else {
      path += path.empty() ? std::string(part) : fmt::format("/{}", part);
    }
  }
  return path;
}

Result<std::string> read_blob(const Blob& blob, std::string_view name, std::size_t bytes_max) {
  if (blob.size > bytes_max) {
    return refuse(fmt::format("{} is larger than {} MiB", one_line(name), bytes_max >> 20));
  }
  std::string text(blob.size, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count =
        ::pread(blob.file->get(), text.data() + done, text.size() - done, static_cast<off_t>(blob.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse(fmt::format("{}: {}", one_line(name), errno_text(errno)));
    if (count == 0) return refuse(fmt::format("{} is cut off", one_line(name)));
    done += static_cast<std::size_t>(count);
  }
  return text;
}

// A document that must be what its name says.
Result<std::string> read_named(const SavedImage& saved, const BlobName& name, std::string_view what) {
  std::string text = TRY(saved.read(blob_path(name.digest), kManifestTextBytesMax));
  if (text.size() != name.size) {
    return refuse(fmt::format("{} has {} bytes, not the {} that lead to it", what, text.size(), name.size));
  }
  if (sha256_of(text) != name.digest) {
    return refuse(fmt::format("{} does not have the digest sha256:{} that leads to it", what, name.digest));
  }
  return text;
}

Result<void> check_layer_count(const ImagePlan& plan, const OciConfig& config) {
  if (plan.layers.empty()) return refuse("the image has no layers");
  if (plan.layers.size() == config.diff_ids.size()) return {};
  return refuse(fmt::format("the image has {} layers, and its configuration names {}", plan.layers.size(),
                            config.diff_ids.size()));
}

void take_config(OciConfig config, ImagePlan& plan) {
  for (std::size_t i = 0; i < plan.layers.size(); ++i) plan.layers[i].diff_id = std::move(config.diff_ids[i]);
  plan.config = std::move(config.config);
}

// The digest in a configuration's name, as "HEX.json", "sha256:HEX" or "blobs/sha256/HEX"; empty where it has none.
std::string digest_in_name(std::string_view name) {
  name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  if (name.starts_with("sha256:")) name.remove_prefix(7);
  if (name.ends_with(".json")) name.remove_suffix(5);
  const auto digest = parse_digest(fmt::format("sha256:{}", name));
  return digest ? *digest : "";
}

}  // namespace

SavedImage::SavedImage(std::shared_ptr<Fd> archive, std::vector<ArchiveMember> members) : archive_(std::move(archive)) {
  for (ArchiveMember& member : members) {
    std::string name = member.name;
    members_.emplace(std::move(name), std::move(member));
  }
}

Result<Blob> SavedImage::find_in_folder(const std::string& name) const {
  auto file = host::open_beneath(folder_.get(), name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status{};
  if (!file || ::fstat(file->get(), &status) != 0) {
    return refuse(fmt::format("{}: {}", one_line(name), errno_text(file ? errno : file.error().value)));
  }
  if (!S_ISREG(status.st_mode)) return refuse(fmt::format("{} is not a file", one_line(name)));
  return Blob{
      .file = std::make_shared<Fd>(std::move(*file)), .offset = 0, .size = static_cast<std::uint64_t>(status.st_size)};
}

Result<Blob> SavedImage::find(const std::string& name) const {
  if (folder_.is_open()) return find_in_folder(name);
  std::string wanted = name;
  while (wanted.starts_with("./")) wanted.erase(0, 2);
  for (int links = 0; links < kLinksMax; ++links) {
    const auto found = members_.find(wanted);
    if (found == members_.end()) return refuse(fmt::format("{} is not in the archive", quote(wanted)));
    const ArchiveMember& member = found->second;
    if (member.link.empty()) return Blob{.file = archive_, .offset = member.offset, .size = member.size};
    wanted = link_target(wanted, member.link);
  }
  return refuse(fmt::format("{} is a link that goes round in circles", quote(name)));
}

Result<std::string> SavedImage::read(const std::string& name, std::size_t bytes_max) const {
  const Blob blob = TRY(find(name));
  return read_blob(blob, name, bytes_max);
}

Result<ImagePlan> plan_oci_image(const SavedImage& saved, std::string form) {
  std::string text = TRY(saved.read("index.json", kManifestTextBytesMax));
  IndexChoice choice = TRY(choose_from_index(text));
  for (int depth = 0; choice.is_index; ++depth) {
    if (depth == kIndexDepthMax) return refuse(fmt::format("more than {} indexes inside each other", kIndexDepthMax));
    text = TRY(read_named(saved, choice.blob, "an index"));
    choice = TRY(choose_from_index(text));
  }
  ImagePlan plan{.form = std::move(form), .manifest_digest = choice.blob.digest};
  text = TRY(read_named(saved, choice.blob, "the manifest"));
  const OciManifest manifest = TRY(parse_oci_manifest(text));
  plan.config_digest = manifest.config.digest;
  text = TRY(read_named(saved, manifest.config, "the configuration"));
  OciConfig config = TRY(parse_oci_config(text));
  for (const BlobName& layer : manifest.layers) {
    Blob blob = TRY(saved.find(blob_path(layer.digest)));
    if (blob.size != layer.size) {
      return refuse(fmt::format("the layer sha256:{} has {} bytes, not the {} that the manifest says", layer.digest,
                                blob.size, layer.size));
    }
    plan.layers.push_back({.blob = std::move(blob), .digest = layer.digest, .diff_id = {}});
  }
  TRY_VOID(check_layer_count(plan, config));
  take_config(std::move(config), plan);
  return plan;
}

Result<ImagePlan> plan_docker_image(const SavedImage& saved) {
  std::string text = TRY(saved.read("manifest.json", kManifestTextBytesMax));
  const DockerManifest manifest = TRY(parse_docker_manifest(text));
  text = TRY(saved.read(manifest.config, kManifestTextBytesMax));
  ImagePlan plan{.form = "docker archive", .config_digest = sha256_of(text)};
  const std::string named = digest_in_name(manifest.config);
  if (!named.empty() && named != plan.config_digest) {
    return refuse(fmt::format("the configuration {} does not have the digest in its name", one_line(manifest.config)));
  }
  OciConfig config = TRY(parse_oci_config(text));
  for (const std::string& layer : manifest.layers) plan.layers.push_back({.blob = TRY(saved.find(layer))});
  TRY_VOID(check_layer_count(plan, config));
  take_config(std::move(config), plan);
  return plan;
}

}  // namespace belljar
