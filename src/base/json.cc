#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "base/utf8.h"

namespace belljar {
namespace {

// Finds too deep nesting before the parser sees the text. In a text that is not JSON it may count wrongly, which does
// no harm: such a text is refused either way.
std::size_t first_too_deep(std::string_view text, std::size_t depth_max) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > depth_max) return i;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return std::string_view::npos;
}

JsonProblem problem_at(std::string_view text, std::size_t offset, std::string what) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto lines = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {lines + 1, before.size() - line_start + 1, std::move(what)};
}

// Watches the keys of the objects that are open; says no to what must not be kept.
class KeyWatch {
 public:
  explicit KeyWatch(std::size_t members_max) : members_max_(members_max) {}

  bool operator()(Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start) {
      open_.emplace_back();
    } else if (event == Event::object_end) {
      open_.pop_back();
    } else if (event == Event::key && problem_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (open_.back().size() >= members_max_) {
        problem_ = fmt::format("an object has more than {} members", members_max_);
      } else if (!open_.back().insert(key).second) {
        problem_ = fmt::format("the key {} is there twice", quote(key));
      }
    }
    return problem_.empty();
  }

  const std::string& problem() const { return problem_; }

 private:
  std::size_t members_max_;
  std::vector<std::set<std::string>> open_;
  std::string problem_;
};

bool is_deeper_than(const Json& json, std::size_t depth_max) {
  if (!json.is_structured()) return false;
  if (depth_max == 0) return true;
  return std::any_of(json.begin(), json.end(),
                     [&](const Json& member) { return is_deeper_than(member, depth_max - 1); });
}

Json pruned(const Json& json, std::size_t depth_max) {
  if (!json.is_structured()) return json;
  if (depth_max == 0) return nullptr;
  Json copy = json.is_array() ? Json::array() : Json::object();
  if (json.is_array()) {
    for (const Json& member : json) copy.push_back(pruned(member, depth_max - 1));
  } else {
    for (auto member = json.begin(); member != json.end(); ++member) {
      copy.push_back({member.key(), pruned(member.value(), depth_max - 1)});
    }
  }
  return copy;
}

// In JSON text, what is not ASCII, and DEL, can only stand inside a string: there, an escape means the same.
std::string with_controls_escaped(std::string text) {
  const auto is_plain = [](char c) { return c >= 0 && c != 0x7F; };
  auto at = std::find_if_not(text.begin(), text.end(), is_plain);
  if (at == text.end()) return text;
  std::string out(text.begin(), at);
  for (std::string_view rest(&*at, static_cast<std::size_t>(text.end() - at)); !rest.empty();) {
    const Utf8Step step = decode_utf8(rest);
    if (is_active_in_terminal(step.code_point)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(step.code_point));
    } else {
      out += rest.substr(0, step.length);
    }
    rest.remove_prefix(step.length);
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

std::expected<Json, JsonProblem> parse_json(std::string_view text, const JsonBounds& bounds) {
  if (text.size() > bounds.bytes_max) {
    return std::unexpected(JsonProblem{0, 0, fmt::format("longer than {} bytes", bounds.bytes_max)});
  }
  if (const std::size_t deep = first_too_deep(text, bounds.depth_max); deep != std::string_view::npos) {
    return std::unexpected(problem_at(text, deep, fmt::format("nested deeper than {}", bounds.depth_max)));
  }
  KeyWatch watch(bounds.members_max);
  try {
    Json json =
        Json::parse(text, [&watch](int, Json::parse_event_t event, Json& parsed) { return watch(event, parsed); });
    if (!watch.problem().empty()) return std::unexpected(JsonProblem{0, 0, watch.problem()});
    return json;
  } catch (const Json::parse_error& error) {
    return std::unexpected(problem_at(text, error.byte == 0 ? 0 : error.byte - 1, "not valid JSON"));
  } catch (const Json::exception&) {
    return std::unexpected(JsonProblem{0, 0, "a number is out of range"});
  }
}

std::string dump_json(const Json& json) {
  const std::size_t depth_max = JsonBounds{}.depth_max;
  const auto dump = [](const Json& value) {
    return with_controls_escaped(value.dump(-1, ' ', false, Json::error_handler_t::replace));
  };
  return is_deeper_than(json, depth_max) ? dump(pruned(json, depth_max)) : dump(json);
}

void put_bytes(Json& object, const std::string& name, std::string_view bytes) {
  object[name] = bytes;
  if (!is_utf8(bytes)) object[name + "_base64"] = base64(bytes);
}

}  // namespace belljar
