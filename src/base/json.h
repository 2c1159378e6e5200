// JSON, as nlohmann-json does it, behind two functions that hold for hostile input: reading is bounded in bytes, depth
// and members and refuses doubled keys; writing never throws, replaces what is not UTF-8, and does not overflow the
// stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace belljar {

// Members keep the order in which they were added. Build with operator[] and initialiser lists; to read, check types
// first (the library's own getters throw).
using Json = nlohmann::ordered_json;

struct JsonBounds {
  std::size_t bytes_max = 1 << 20;
  std::size_t depth_max = 64;       // of arrays and objects inside each other
  std::size_t members_max = 10000;  // of one object
};

struct JsonProblem {
  std::size_t line;  // from 1; 0 when the text as a whole is the problem
  std::size_t column;
  std::string what;  // one line
};

// Reads one JSON text (RFC 8259; no comments, nothing after it).
std::expected<Json, JsonProblem> parse_json(std::string_view text, const JsonBounds& bounds = {});

// Writes JSON on one line. Bytes that are not UTF-8 become U+FFFD; NaN and infinities become null; whatever lies deeper
// than JsonBounds{}.depth_max becomes null. Control characters, C1 and DEL included, and characters that reorder text
// are escaped, so that a record can be looked at in a terminal.
std::string dump_json(const Json& json);

// Sets the member `name` of an object to bytes that should be text. Where they are not UTF-8, so that writing loses
// some, `name`_base64 beside it has them all (RFC 4648).
void put_bytes(Json& object, const std::string& name, std::string_view bytes);

}  // namespace belljar
