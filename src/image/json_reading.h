// Reading checked values out of JSON. Each function names the member in its error (bad_image) and never throws.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace belljar {

// The text as a JSON object. `what` names the document: "the image's manifest".
Result<Json> read_json_object(std::string_view text, std::string_view what, const JsonBounds& bounds);

// A member of an object; null where it is missing or is JSON's null.
const Json* find_member(const Json& object, std::string_view name);

Result<const Json*> read_object(const Json& object, std::string_view name);
Result<const Json*> read_array(const Json& object, std::string_view name, std::size_t count_max);
Result<std::string> read_text(const Json& object, std::string_view name);
Result<std::uint64_t> read_number(const Json& object, std::string_view name);

// Missing is empty.
Result<std::string> read_optional_text(const Json& object, std::string_view name);
Result<std::vector<std::string>> read_optional_texts(const Json& object, std::string_view name, std::size_t count_max);

}  // namespace belljar
