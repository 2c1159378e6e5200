#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/unseen.h"

namespace belljar {
namespace {

// The rows of table 3-7 of the Unicode Standard: how long a sequence is, and what its second byte may be.
struct LeadByte {
  std::size_t length;  // 0: can't begin a character
  unsigned char second_least = 0x80;
  unsigned char second_most = 0xBF;
};

LeadByte lead_byte(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

void append_escaped_bytes(std::string_view bytes, std::string& out) {
  for (const char byte : bytes) fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
}

void append_escaped_character(char32_t c, std::string& out) {
  if (c < 0x80) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned>(c));
  } else {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  }
}

// Appends one decoded step, visible and harmless; \n and \t are escaped here too.
void append_visible(const Utf8Step& step, std::string_view bytes, std::string& out) {
  if (step.kind != Utf8Step::Kind::character) {
    append_escaped_bytes(bytes, out);
  } else if (step.code_point == '\n') {
    out += "\\n";
  } else if (step.code_point == '\r') {
    out += "\\r";
  } else if (step.code_point == '\t') {
    out += "\\t";
  } else if (is_active_in_terminal(step.code_point)) {
    append_escaped_character(step.code_point, out);
  } else {
    out += bytes;
  }
}

enum class Quoting { with_quotes, without };

void append_one_line(std::string_view text, std::size_t bytes_max, Quoting quoting, std::string& out) {
  const std::string_view shown = utf8_prefix(text, bytes_max);
  for (std::string_view rest = shown; !rest.empty();) {
    const Utf8Step step = decode_utf8(rest);
    if (quoting == Quoting::with_quotes && (step.code_point == '"' || step.code_point == '\\')) out += '\\';
    if (step.kind == Utf8Step::Kind::character && misleads_reader(step.code_point)) {
      append_escaped_character(step.code_point, out);
    } else {
      append_visible(step, rest.substr(0, step.length), out);
    }
    rest.remove_prefix(step.length);
  }
  if (shown.size() < text.size()) out += "...";
}

}  // namespace

bool is_active_in_terminal(char32_t c) {
  const bool is_control = c < 0x20 || (c >= 0x7F && c <= 0x9F);
  const bool reorders_text = (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  return is_control || reorders_text;
}

Utf8Step decode_utf8(std::string_view text) {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const LeadByte lead = lead_byte(byte_at(0));
  if (lead.length == 0) return {Utf8Step::Kind::invalid, 1};
  if (lead.length == 1) return {Utf8Step::Kind::character, 1, byte_at(0)};
  char32_t code_point = byte_at(0) & (0xFFu >> (lead.length + 1));
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8Step::Kind::unfinished, i};
    const unsigned char least = i == 1 ? lead.second_least : 0x80;
    const unsigned char most = i == 1 ? lead.second_most : 0xBF;
    if (byte_at(i) < least || byte_at(i) > most) return {Utf8Step::Kind::invalid, i};
    code_point = code_point << 6 | (byte_at(i) & 0x3Fu);
  }
  return {Utf8Step::Kind::character, lead.length, code_point};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    if (step.kind != Utf8Step::Kind::character) return false;
    text.remove_prefix(step.length);
  }
  return true;
}

std::size_t utf8_cut(std::string_view text) {
  // An unfinished character has at most three bytes: its first byte is one of the last three.
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const std::size_t start = text.size() - back;
    const Utf8Step step = decode_utf8(text.substr(start));
    if (step.kind == Utf8Step::Kind::unfinished && step.length == back) return start;
  }
  return text.size();
}

std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  const std::string_view shorter = text.substr(0, bytes_max);
  return shorter.substr(0, utf8_cut(shorter));
}

void TerminalNeutraliser::feed(std::string_view chunk, std::string& out) {
  std::string joined;
  if (!unfinished_.empty()) {
    joined = std::exchange(unfinished_, {});
    joined += chunk;
    chunk = joined;
  }
  while (!chunk.empty()) {
    // Most output is plain ASCII: take it in one piece.
    const auto is_plain = [](char c) { return (c >= 0x20 && c < 0x7F) || c == '\t'; };
    const auto plain_end = std::find_if_not(chunk.begin(), chunk.end(), is_plain);
    if (plain_end != chunk.begin()) {
      out.append(chunk.begin(), plain_end);
      chunk.remove_prefix(static_cast<std::size_t>(plain_end - chunk.begin()));
      after_carriage_return_ = false;
      continue;
    }
    const Utf8Step step = decode_utf8(chunk);
    const std::string_view bytes = chunk.substr(0, step.length);
    chunk.remove_prefix(step.length);
    if (step.kind == Utf8Step::Kind::unfinished) {
      unfinished_ = bytes;
      return;
    }
    const bool line_end = step.code_point == '\n' || step.code_point == '\r';
    if (!line_end) {
      append_visible(step, bytes, out);
    } else if (step.code_point == '\r' || !after_carriage_return_) {
      out += '\n';
    }
    after_carriage_return_ = step.code_point == '\r';
  }
}

void TerminalNeutraliser::finish(std::string& out) {
  append_escaped_bytes(std::exchange(unfinished_, {}), out);
}

std::string quote(std::string_view text, std::size_t bytes_max) {
  std::string out = "\"";
  append_one_line(text, bytes_max, Quoting::with_quotes, out);
  out += '"';
  return out;
}

std::string one_line(std::string_view text, std::size_t bytes_max) {
  std::string out;
  append_one_line(text, bytes_max, Quoting::without, out);
  return out;
}

}  // namespace belljar
