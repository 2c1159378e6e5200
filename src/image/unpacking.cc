#include "image/unpacking.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/utf8.h"
#include "host/open_path.h"
#include "image/cache_folder.h"
#include "image/folder_reader.h"
#include "image/image_manifest.h"
#include "image/json_reading.h"
#include "image/path_trace.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kAccountBytesMax = std::size_t{1} << 20;
constexpr std::size_t kPartsMax = 100;  // each may cost a mount
constexpr JsonBounds kBounds = {.bytes_max = kReportBytesMax, .depth_max = 8, .members_max = 100};
constexpr std::string_view kHosts = "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost sandbox\n";

// A sandbox has its own of these.
constexpr std::string_view kProvided[] = {"dev", "proc", "sys", "tmp"};

std::string report(const Json& content) {
  return dump_json(content);
}

std::string error_report(const Error& error) {
  return report({{"error", error_name(error.code)}, {"message", error.message}});
}

// The content of a report, or the error that it tells.
Result<Json> read_report(std::string_view text) {
  Json json = TRY(read_json_object(text, "the report of the reading process", kBounds));
  if (find_member(json, "error") == nullptr) return json;
  const std::string code = TRY(read_text(json, "error"));
  const std::string message = TRY(read_text(json, "message"));
  const bool is_room = code == error_name(ErrorCode::no_resources);
  return fail(is_room ? ErrorCode::no_resources : ErrorCode::bad_image, one_line(message));
}

Result<Fd> open_tree(const ConfinedPlaces& places) {
  auto root = open_at(places.folder_fd, "root", O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (root) return std::move(*root);
  return fail(ErrorCode::bad_image, fmt::format("no folder to unpack into: {}", errno_text(root.error().value)));
}

std::string unpack_report(const Result<std::string>& diff_id, const TreeWriter& writer) {
  if (!diff_id) return error_report(diff_id.error());
  return report({{"diff_id", *diff_id}, {"counts", counts_to_json(writer.counts())}});
}

// A small file of the tree, whose links lead where they would with the tree as "/"; empty where there is none.
std::string read_in_tree(int root_fd, const char* path) {
  const auto file = host::open_in_root(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status{};
  if (!file || ::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  return read_all(file->get(), kAccountBytesMax).value_or("");
}

// Saved images have no /etc/hosts, or an empty one: what runs them puts it there.
Result<void> give_hosts(int root_fd) {
  const auto etc = host::open_beneath(root_fd, "etc", O_PATH | O_DIRECTORY);
  if (!etc) return {};
  struct stat status{};
  if (::fstatat(etc->get(), "hosts", &status, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISREG(status.st_mode) || status.st_size > 0 || ::unlinkat(etc->get(), "hosts", 0) != 0) return {};
  }
  const auto hosts = open_at(etc->get(), "hosts", O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (hosts && ::fchmod(hosts->get(), 0644) == 0 && write_all(hosts->get(), kHosts)) return {};
  return fail(ErrorCode::no_resources, "no room for /etc/hosts");
}

bool is_provided(std::string_view path) {
  const std::string_view name = path.substr(1, path.find('/', 1) - 1);
  return std::ranges::find(kProvided, name) != std::end(kProvided);
}

// Makes what is missing of the folder in which the image wants its programs to start, as other tools do. Links lead
// where they would with the tree as "/".
Result<void> give_working_folder(int root_fd, std::string_view path) {
  if (path.empty() || is_provided(path)) return {};
  const auto refuse = [&path](int error) {
    return fail(ErrorCode::bad_image,
                fmt::format("the image's WorkingDir {} can't be made: {}", quote(path), errno_text(error)));
  };
  auto folder = host::open_in_root(root_fd, "/", O_PATH | O_DIRECTORY);
  for (std::size_t end = 0; folder && end < path.size();) {
    const std::size_t begin = end + 1;
    end = std::min(path.find('/', begin), path.size());
    const std::string name(path.substr(begin, end - begin));
    const std::string above_and_name(path.substr(0, end));
    auto next = host::open_in_root(root_fd, above_and_name.c_str(), O_PATH | O_DIRECTORY);
    if (!next && next.error().value == ENOENT) {
      if (::mkdirat(folder->get(), name.c_str(), 0755) != 0) return refuse(errno);
      next = open_at(folder->get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      if (next && ::fchmod(next->get(), 0755) != 0) return refuse(errno);
    }
    folder = std::move(next);
  }
  return folder ? Result<void>() : refuse(folder.error().value);
}

Result<bool> is_empty(int root_fd, const std::string& name) {
  auto folder = open_at(root_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  DIR* const stream = folder ? ::fdopendir(folder->get()) : nullptr;
  if (stream == nullptr) return fail(ErrorCode::bad_image, fmt::format("/{} can't be opened", one_line(name)));
  (void)folder->release();
  int entries = 0;
  while (::readdir(stream) != nullptr) ++entries;  // NOLINT(concurrency-mt-unsafe): one stream, one thread
  ::closedir(stream);
  return entries <= 2;  // "." and ".."
}

Result<ImagePart> look_at_part(int root_fd, std::string name) {
  ImagePart part{.name = std::move(name), .kind = ImagePart::Kind::file, .target = {}};
  struct stat status{};
  if (::fstatat(root_fd, part.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail(ErrorCode::bad_image, fmt::format("/{}: {}", one_line(part.name), errno_text(errno)));
  }
  if (S_ISLNK(status.st_mode)) {
    part.kind = ImagePart::Kind::link;
    part.target = read_link_at(root_fd, part.name.c_str());
  } else if (S_ISDIR(status.st_mode)) {
    part.kind = TRY(is_empty(root_fd, part.name)) ? ImagePart::Kind::empty_folder : ImagePart::Kind::folder;
  }
  if (is_utf8(part.name) && is_utf8(part.target)) return part;
  return fail(ErrorCode::bad_image,
              fmt::format("/{}: a name at the top of an image must be UTF-8", one_line(part.name)));
}

Result<std::vector<ImagePart>> look_at_top(int root_fd) {
  auto copy = open_at(root_fd, ".", O_RDONLY | O_DIRECTORY);
  DIR* const stream = copy ? ::fdopendir(copy->get()) : nullptr;
  if (stream == nullptr) return fail(ErrorCode::bad_image, "its root can't be read");
  (void)copy->release();
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && std::ranges::find(kProvided, name) == std::end(kProvided))
      names.emplace_back(name);
  }
  ::closedir(stream);
  if (names.empty()) return fail(ErrorCode::bad_image, "there is nothing in it");
  if (names.size() > kPartsMax) {
    return fail(ErrorCode::bad_image,
                fmt::format("there are {} names at its top, and at most {} can be shown", names.size(), kPartsMax));
  }
  std::ranges::sort(names);
  std::vector<ImagePart> parts;
  for (std::string& name : names) parts.push_back(TRY(look_at_part(root_fd, std::move(name))));
  return parts;
}

Result<Json> describe_tree(int root_fd, FolderAccess access, const ImageConfig& config) {
  if (access == FolderAccess::read_write) {
    TRY_VOID(give_hosts(root_fd));
    TRY_VOID(give_working_folder(root_fd, config.working_folder));
  }
  const std::vector<ImagePart> parts = TRY(look_at_top(root_fd));
  const UserIds ids =
      TRY(resolve_user(config.user, read_in_tree(root_fd, "etc/passwd"), read_in_tree(root_fd, "etc/group")));
  return Json{{"parts", parts_to_json(parts)}, {"uid", ids.uid}, {"gid", ids.gid}};
}

}  // namespace

std::string unpack_layer_child(int input_fd, const ConfinedPlaces& places, Whiteouts whiteouts, LayerPlace place,
                               Ownership ownership, const TreeLimits& limits, const TreeCounts& counts) {
  const auto root = open_tree(places);
  if (!root) return error_report(root.error());
  TreeWriter writer(root->get(), ownership, limits, place, counts);
  return unpack_report(unpack_layer(read_from(input_fd), whiteouts, writer), writer);
}

std::string copy_folder_child(const ConfinedPlaces& places, Ownership ownership, const TreeLimits& limits) {
  const auto root = open_tree(places);
  if (!root) return error_report(root.error());
  TreeWriter writer(root->get(), ownership, limits, LayerPlace::first, TreeCounts{});
  return unpack_report(copy_folder(places.source_fd, writer), writer);
}

Result<UnpackReport> read_unpack_report(std::string_view text) {
  const Json json = TRY(read_report(text));
  UnpackReport unpacked;
  const std::string diff_id = TRY(read_text(json, "diff_id"));
  if (!diff_id.empty()) unpacked.diff_id = TRY(parse_digest("sha256:" + diff_id));
  unpacked.counts = TRY(read_counts(json));
  return unpacked;
}

std::string list_archive_child(int input_fd) {
  const auto listing = list_archive(input_fd);
  if (!listing) return error_report(listing.error());
  Json members = Json::array();
  for (const ArchiveMember& member : listing->members) {
    members.push_back(Json::array({member.name, member.offset, member.size, member.link}));
  }
  return report({{"form", static_cast<unsigned>(listing->form)},
                 {"is_packed", listing->is_packed},
                 {"members", std::move(members)}});
}

Result<ArchiveListing> read_listing_report(std::string_view text) {
  const auto odd = [] { return fail(ErrorCode::bad_image, "the listing of the archive is not sound"); };
  const Json json = TRY(read_report(text));
  ArchiveListing listing;
  const std::uint64_t form = TRY(read_number(json, "form"));
  if (form > static_cast<std::uint64_t>(ArchiveForm::docker)) return odd();
  listing.form = static_cast<ArchiveForm>(form);
  const Json* const packed = find_member(json, "is_packed");
  if (packed == nullptr || !packed->is_boolean()) return odd();
  listing.is_packed = packed->get<bool>();
  const Json& members = *TRY(read_array(json, "members", kArchiveMembersMax));
  for (const Json& row : members) {
    const bool is_sound = row.is_array() && row.size() == 4 && row[0].is_string() && row[1].is_number_unsigned() &&
                          row[2].is_number_unsigned() && row[3].is_string();
    if (!is_sound) return odd();
    listing.members.push_back({.name = row[0].get_ref<const std::string&>(),
                               .offset = row[1].get<std::uint64_t>(),
                               .size = row[2].get<std::uint64_t>(),
                               .link = row[3].get_ref<const std::string&>()});
  }
  return listing;
}

std::string expand_archive_child(int input_fd, int folder_fd, std::string_view name, std::uint64_t bytes_max) {
  const auto file = open_at(folder_fd, std::string(name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file) return error_report({ErrorCode::no_resources, errno_text(file.error().value)});
  const auto expanded = expand_archive(input_fd, file->get(), bytes_max);
  return expanded ? report(Json::object()) : error_report(expanded.error());
}

Result<void> read_plain_report(std::string_view text) {
  TRY(read_report(text));
  return {};
}

std::string describe_tree_child(int root_fd, FolderAccess access, const ImageConfig& config) {
  const auto described = describe_tree(root_fd, access, config);
  return described ? report(*described) : error_report(described.error());
}

Result<TreeDescription> read_description_report(std::string_view text) {
  const Json json = TRY(read_report(text));
  TreeDescription described;
  described.parts = TRY(read_parts(json));
  const std::uint64_t uid = TRY(read_number(json, "uid"));
  const std::uint64_t gid = TRY(read_number(json, "gid"));
  if (uid > kImageIdMax || gid > kImageIdMax) return fail(ErrorCode::bad_image, "a user id is out of range");
  described.user = {.uid = static_cast<unsigned>(uid), .gid = static_cast<unsigned>(gid)};
  return described;
}

}  // namespace belljar
