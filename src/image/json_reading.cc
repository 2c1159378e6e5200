#include "image/json_reading.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "spec/errors.h"

namespace belljar {
namespace {

std::unexpected<Error> refuse(std::string why) {
  return fail(ErrorCode::bad_image, std::move(why));
}

Result<const Json*> read_member(const Json& object, std::string_view name) {
  if (!object.is_object()) return refuse(fmt::format("what should hold {} is no object", name));
  const Json* const member = find_member(object, name);
  if (member == nullptr) return refuse(fmt::format("{} is missing", name));
  return member;
}

Result<std::vector<std::string>> texts_of(const Json& array, std::string_view name, std::size_t count_max) {
  if (!array.is_array()) return refuse(fmt::format("{} is not a list of texts", name));
  if (array.size() > count_max) return refuse(fmt::format("{} has more than {} entries", name, count_max));
  std::vector<std::string> texts;
  for (const Json& text : array) {
    if (!text.is_string()) return refuse(fmt::format("{} is not a list of texts", name));
    texts.push_back(text.get_ref<const std::string&>());
  }
  return texts;
}

}  // namespace

Result<Json> read_json_object(std::string_view text, std::string_view what, const JsonBounds& bounds) {
  auto json = parse_json(text, bounds);
  if (!json) {
    return refuse(fmt::format("{}: line {}, column {}: {}", what, json.error().line, json.error().column,
                              one_line(json.error().what)));
  }
  if (!json->is_object()) return refuse(fmt::format("{} is not a JSON object", what));
  return std::move(*json);
}

const Json* find_member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Result<const Json*> read_object(const Json& object, std::string_view name) {
  const Json* const member = TRY(read_member(object, name));
  if (!member->is_object()) return refuse(fmt::format("{} is not an object", name));
  return member;
}

Result<const Json*> read_array(const Json& object, std::string_view name, std::size_t count_max) {
  const Json* const member = TRY(read_member(object, name));
  if (!member->is_array()) return refuse(fmt::format("{} is not a list", name));
  if (member->size() > count_max) return refuse(fmt::format("{} has more than {} entries", name, count_max));
  return member;
}

Result<std::string> read_text(const Json& object, std::string_view name) {
  const Json* const member = TRY(read_member(object, name));
  if (!member->is_string()) return refuse(fmt::format("{} is not a text", name));
  return member->get_ref<const std::string&>();
}

Result<std::uint64_t> read_number(const Json& object, std::string_view name) {
  const Json* const member = TRY(read_member(object, name));
  if (!member->is_number_unsigned()) return refuse(fmt::format("{} is not a whole number", name));
  return member->get<std::uint64_t>();
}

Result<std::string> read_optional_text(const Json& object, std::string_view name) {
  return find_member(object, name) == nullptr ? std::string() : read_text(object, name);
}

Result<std::vector<std::string>> read_optional_texts(const Json& object, std::string_view name, std::size_t count_max) {
  const Json* const member = find_member(object, name);
  if (member == nullptr) return std::vector<std::string>();
  return texts_of(*member, name, count_max);
}

}  // namespace belljar
