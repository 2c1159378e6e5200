#include "files/changeset.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <tuple>

#include "base/json.h"
#include "base/utf8.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr int kForm = 1;
constexpr std::size_t kDigestDigits = 64;
constexpr JsonBounds kBounds{.bytes_max = std::size_t{1} << 30, .depth_max = 8};

std::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::bad_changes, fmt::format("the kept changes are damaged: {}", what));
}

// Bytes as JSON: text where they are UTF-8, else their hexadecimal digits in a list of one, which no text is.
Json bytes_json(std::string_view bytes) {
  if (is_utf8(bytes)) return Json(bytes);
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return Json::array({digits});
}

int digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

std::optional<std::string> bytes_of(const Json& json) {
  if (json.is_string()) return json.get_ref<const std::string&>();
  if (!json.is_array() || json.size() != 1 || !json[0].is_string()) return std::nullopt;
  const auto& digits = json[0].get_ref<const std::string&>();
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit_value(digits[i]);
    const int low = digit_value(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

// Reads the members of one object; remembers the first that is missing or of the wrong kind.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  const Json* find(const char* name) {
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    if (object_.is_object() && found != object_.end()) return &*found;
    wrong(name);
    return nullptr;
  }
  std::string bytes(const char* name) {
    const Json* const member = find(name);
    auto value = member != nullptr ? bytes_of(*member) : std::nullopt;
    if (!value) wrong(name);
    return value ? std::move(*value) : "";
  }
  std::uint64_t number(const char* name) {
    const Json* const member = find(name);
    if (member != nullptr && member->is_number_unsigned()) return member->get<std::uint64_t>();
    wrong(name);
    return 0;
  }
  std::int64_t time(const char* name) {
    const Json* const member = find(name);
    if (member != nullptr && member->is_number_integer()) return member->get<std::int64_t>();
    wrong(name);
    return 0;
  }
  bool flag(const char* name) {
    const Json* const member = find(name);
    if (member != nullptr && member->is_boolean()) return member->get<bool>();
    wrong(name);
    return false;
  }
  template <typename Value, typename Rows>
  Value choice(const char* name, const Rows& rows) {
    const std::string word = bytes(name);
    for (const auto& [value, text] : rows) {
      if (word == text) return value;
    }
    wrong(name);
    return Value{};
  }
  void wrong(const char* name) {
    if (problem_.empty()) problem_ = name;
  }
  const std::string& problem() const { return problem_; }

 private:
  const Json& object_;
  std::string problem_;
};

constexpr std::tuple<FileChange, std::string_view> kChanges[] = {
    {FileChange::added, "added"}, {FileChange::modified, "modified"}, {FileChange::deleted, "deleted"}};
constexpr std::tuple<FileKind, std::string_view> kKinds[] = {
    {FileKind::regular, "file"}, {FileKind::folder, "folder"}, {FileKind::link, "link"}};

std::string_view kind_name(FileKind kind) {
  for (const auto& [value, text] : kKinds) {
    if (value == kind) return text;
  }
  return "file";
}

bool is_digest(std::string_view text) {
  return text.size() == kDigestDigits && std::ranges::all_of(text, [](char c) { return digit_value(c) >= 0; });
}

bool is_sound_path(std::string_view path) {
  if (path.size() >= PATH_MAX || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == ".." || part.size() > NAME_MAX) return false;
    if (part.size() == path.size()) return true;
    path.remove_prefix(part.size() + 1);
  }
}

Json change_json(const Change& change) {
  Json json = {{"path", bytes_json(change.path)},
               {"kind", kind_name(change.kind)},
               {"change", file_change_name(change.change)},
               {"in_git_folder", change.in_git_folder}};
  if (change.change != FileChange::deleted) {
    json["size"] = change.size;
    json["executable"] = change.is_executable;
    if (change.kind == FileKind::regular) json["sha256"] = change.sha256;
    if (change.kind == FileKind::link) json["target"] = bytes_json(change.link_target);
  }
  if (change.change != FileChange::added) {
    json["before"] = {{"size", change.before.size},
                      {"modified_ns", change.before.modified_ns},
                      {"changed_ns", change.before.changed_ns},
                      {"inode", change.before.inode}};
    if (!change.before_sha256.empty()) json["before_sha256"] = change.before_sha256;
  }
  return json;
}

Result<Change> read_change(const Json& json) {
  Members members(json);
  Change change;
  change.path = members.bytes("path");
  if (!is_sound_path(change.path)) members.wrong("path");
  change.kind = members.choice<FileKind>("kind", kKinds);
  change.change = members.choice<FileChange>("change", kChanges);
  change.in_git_folder = members.flag("in_git_folder");
  if (change.change != FileChange::deleted) {
    change.size = members.number("size");
    change.is_executable = members.flag("executable");
    if (change.kind == FileKind::regular) change.sha256 = members.bytes("sha256");
    if (change.kind == FileKind::regular && !is_digest(change.sha256)) members.wrong("sha256");
    if (change.kind == FileKind::link) change.link_target = members.bytes("target");
  }
  if (change.change != FileChange::added) {
    const Json* const before = members.find("before");
    Members stamp(before != nullptr ? *before : json);
    change.before = {stamp.number("size"), stamp.time("modified_ns"), stamp.time("changed_ns"), stamp.number("inode")};
    if (!stamp.problem().empty()) members.wrong("before");
    if (json.contains("before_sha256")) change.before_sha256 = members.bytes("before_sha256");
    if (!change.before_sha256.empty() && !is_digest(change.before_sha256)) members.wrong("before_sha256");
  }
  if (members.problem().empty()) return change;
  return damaged(fmt::format("a change's {}", members.problem()));
}

}  // namespace

std::string_view file_change_name(FileChange change) {
  for (const auto& [value, text] : kChanges) {
    if (value == change) return text;
  }
  return "";
}

// Written change by change: all of them as one document would take many times their size in memory.
std::string changeset_to_json(const Changeset& changeset) {
  std::string text = dump_json({{"form", kForm},
                                {"workspace", bytes_json(changeset.workspace)},
                                {"device", changeset.device},
                                {"inode", changeset.inode},
                                {"created_ns", changeset.created_ns}});
  text.back() = ',';
  text += "\"changes\":[";
  const char* separator = "";
  for (const Change& change : changeset.changes) {
    text.append(separator).append(dump_json(change_json(change)));
    separator = ",";
  }
  return text + "]}";
}

Result<Changeset> read_changeset(std::string_view text) {
  const auto json = parse_json(text, kBounds);
  if (!json) return damaged(json.error().what);
  Members members(*json);
  if (members.number("form") != kForm) return damaged("they are of a form that this version does not know");
  Changeset changeset;
  changeset.workspace = members.bytes("workspace");
  if (!changeset.workspace.starts_with('/') || changeset.workspace.find('\0') != std::string::npos) {
    members.wrong("workspace");
  }
  changeset.device = members.number("device");
  changeset.inode = members.number("inode");
  changeset.created_ns = members.time("created_ns");
  const Json* const changes = members.find("changes");
  if (changes != nullptr && !changes->is_array()) members.wrong("changes");
  if (!members.problem().empty()) return damaged(members.problem());
  for (const Json& change : *changes) changeset.changes.push_back(TRY(read_change(change)));
  const auto is_before = [](const Change& a, const Change& b) { return a.path < b.path; };
  if (!std::ranges::is_sorted(changeset.changes, is_before)) return damaged("their order");
  return changeset;
}

}  // namespace belljar
