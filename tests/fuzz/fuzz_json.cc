// Any bytes as JSON to read, as text to write into JSON, and as output for a terminal.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/json.h"
#include "base/utf8.h"

namespace {

void check_is_harmless(std::string_view text) {
  while (!text.empty()) {
    const belljar::Utf8Step step = belljar::decode_utf8(text);
    if (step.kind != belljar::Utf8Step::Kind::character) std::abort();
    const bool is_allowed = step.code_point == '\n' || step.code_point == '\t';
    if (!is_allowed && belljar::is_active_in_terminal(step.code_point)) std::abort();
    text.remove_prefix(step.length);
  }
}

void check_reading(std::string_view text) {
  const auto json = belljar::parse_json(text);
  if (!json) {
    check_is_harmless(json.error().what);
    return;
  }
  const std::string written = belljar::dump_json(*json);
  check_is_harmless(written);
  // The copy is read without bounds that writing may exceed: escapes make a text longer.
  const auto again = belljar::parse_json(written, {.bytes_max = SIZE_MAX});
  if (!again || belljar::dump_json(*again) != written) std::abort();
}

void check_writing(std::string_view text) {
  belljar::Json record = belljar::Json::object();
  record[std::string(text)] = std::string(text);
  const std::string written = belljar::dump_json(record);
  check_is_harmless(written);
  const auto again = belljar::parse_json(written, {.bytes_max = SIZE_MAX});
  if (!again || (belljar::is_utf8(text) && *again != record)) std::abort();
}

// The first byte chooses the size of the chunks.
void check_terminal(std::string_view text) {
  belljar::TerminalNeutraliser whole;
  std::string expected;
  whole.feed(text, expected);
  whole.finish(expected);
  check_is_harmless(expected);
  belljar::TerminalNeutraliser parts;
  std::string out;
  const std::size_t chunk = text.empty() ? 1 : 1 + static_cast<unsigned char>(text[0]) % 7;
  for (std::size_t at = 0; at < text.size(); at += chunk) parts.feed(text.substr(at, chunk), out);
  parts.finish(out);
  if (out != expected) std::abort();
}

void check_cutting(std::string_view text) {
  const std::size_t most = text.empty() ? 0 : static_cast<unsigned char>(text.back());
  const std::string_view prefix = belljar::utf8_prefix(text, most);
  if (prefix.size() > most || prefix.size() + 3 < std::min(most, text.size())) std::abort();
  if (belljar::is_utf8(text) && !belljar::is_utf8(prefix)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_reading(text);
  check_writing(text);
  check_terminal(text);
  check_cutting(text);
  return 0;
}
