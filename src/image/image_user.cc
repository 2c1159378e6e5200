#include "image/image_user.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/utf8.h"
#include "image/tree_writer.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kNameBytesMax = 256;

std::unexpected<Error> refuse(std::string_view user, std::string_view why) {
  return fail(ErrorCode::bad_image, fmt::format("the image's user {}: {}", quote(user), why));
}

std::optional<unsigned> parse_id(std::string_view text) {
  unsigned id = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), id);
  if (error != std::errc() || end != text.end() || id > kImageIdMax) return std::nullopt;
  return id;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_name(std::string_view text) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-' || c == '$';
  };
  return !text.empty() && text.size() <= kNameBytesMax && text[0] != '-' && std::ranges::all_of(text, is_good);
}

// The first four fields of a line: name, password, id, and a group id (passwd(5)) or members (group(5)).
using AccountLine = std::array<std::string_view, 4>;

// The first line whose field `index` is `value`.
std::optional<AccountLine> find_line(std::string_view table, std::size_t index, std::string_view value) {
  while (!table.empty()) {
    std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    AccountLine fields;
    for (std::string_view& field : fields) {
      field = line.substr(0, line.find(':'));
      line.remove_prefix(std::min(field.size() + 1, line.size()));
    }
    if (fields[index] == value) return fields;
  }
  return std::nullopt;
}

}  // namespace

Result<UserIds> resolve_user(std::string_view user, std::string_view passwd, std::string_view group) {
  UserIds ids;
  if (user.empty()) return ids;
  const std::size_t colon = user.find(':');
  const std::string_view name = user.substr(0, colon);
  if (!is_name(name)) return refuse(user, "not of the form USER, UID, USER:GROUP or UID:GID");
  const auto account = find_line(passwd, is_number(name) ? 2 : 0, name);
  if (!account && !is_number(name)) return refuse(user, "there is no such user in the image's /etc/passwd");
  const auto uid = parse_id(account && !is_number(name) ? (*account)[2] : name);
  if (!uid) return refuse(user, fmt::format("a user id goes from 0 to {}", kImageIdMax));
  ids.uid = *uid;
  std::string_view wanted_gid = account ? (*account)[3] : "0";
  if (colon != std::string_view::npos) {
    const std::string_view group_name = user.substr(colon + 1);
    if (!is_name(group_name)) return refuse(user, "not of the form USER, UID, USER:GROUP or UID:GID");
    const auto group_line = is_number(group_name) ? std::nullopt : find_line(group, 0, group_name);
    if (!group_line && !is_number(group_name)) return refuse(user, "there is no such group in the image's /etc/group");
    wanted_gid = group_line ? (*group_line)[2] : group_name;
  }
  const auto gid = parse_id(wanted_gid);
  if (!gid) return refuse(user, fmt::format("a group id goes from 0 to {}", kImageIdMax));
  ids.gid = *gid;
  return ids;
}

}  // namespace belljar
