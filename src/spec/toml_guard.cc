// toml++ 3.3, which Debian 12 has, is undone by documents that it should only refuse:
// - it recurses for each table inside a table when it destroys them, and dotted keys make such tables without end;
// - its test for spaces beyond ASCII runs into __builtin_unreachable() for most other letters. It is asked wherever a
//   space may stand: outside strings and comments, in """strings""" after a backslash that ends a line, and anywhere in
//   what begins like a number, which the library reads to its end before it looks closer;
// - it asserts that a table's name begins as a name does, that no } ends an array, and that what follows a date and a
//   space is the whole of a time.
// Up to its first error the library and this scan agree on what is a string, a comment or a table's header, and after
// that error the library reads no further.
#include "spec/toml_guard.h"

#include <algorithm>
#include <string>

namespace belljar {
namespace {

constexpr std::size_t kDotsMax = 16;
constexpr std::string_view kBeforeWord = " \t\r\n=,[{";
constexpr std::string_view kAfterValue = " \t\r\n\v\f,]}#";
constexpr std::string_view kBeyondAscii =
    "a character beyond ASCII stands outside strings and comments; put keys and values in quotes";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

bool begins_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '"' || c == '\'';
}

class Scan {
 public:
  explicit Scan(std::string_view text)
      : text_(text), at_(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0) {}

  std::optional<TomlFault> find_fault() {
    while (at_ < text_.size() && fault_.empty()) step();
    if (fault_.empty()) return std::nullopt;
    return TomlFault{line_, fault_};
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void take() {
    if (text_[at_++] == '\n') ++line_;
  }

  void take_all_of(std::string_view characters) {
    while (at_ < text_.size() && characters.find(text_[at_]) != std::string_view::npos) take();
  }

  void step() {
    const char c = text_[at_];
    const bool may_begin_header = !is_in_line_;
    is_in_line_ = is_in_line_ || (c != ' ' && c != '\t');
    check_number();
    if (!is_ascii(c)) {
      fault_ = kBeyondAscii;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '"' || c == '\'') {
      skip_string();
    } else if (c == '[' && may_begin_header && open_.empty()) {
      skip_header_start();
    } else {
      count(c);
      take();
    }
  }

  // If a word that begins like a number starts here, looks at all of it. It ends where the library ends a value.
  void check_number() {
    const bool is_number = (text_[at_] >= '0' && text_[at_] <= '9') || text_[at_] == '+' || text_[at_] == '-';
    const bool is_start = at_ > 0 && kBeforeWord.find(text_[at_ - 1]) != std::string_view::npos;
    if (!is_number || !is_start || at_ < number_end_) return;
    number_end_ = std::min(text_.find_first_of(kAfterValue, at_), text_.size());
    const std::string_view word = text_.substr(at_, number_end_ - at_);
    if (!std::ranges::all_of(word, is_ascii)) fault_ = kBeyondAscii;
    if (std::ranges::count(word.substr(1), '-') >= 2)
      fault_ = "no key takes a date; if this is a text, put it in quotes";
  }

  // Keeps what brackets are open, and the dots of the key that is being read.
  void count(char c) {
    if (c == '}' && open_.ends_with('[')) fault_ = "} stands where only ] can close what [ opened";
    if (c == '[' || c == '{') open_ += c;
    if ((c == ']' || c == '}') && !open_.empty()) open_.pop_back();
    if (c == '\n') is_in_line_ = false;
    if (c == '.') {
      if (++dots_ > kDotsMax) fault_ = "a key has too many dots; at most 16 can be read";
    } else if (c == '\n' || c == '=' || c == ',' || c == '{' || c == '[') {
      dots_ = 0;
    }
  }

  // [name] or [[name]] at the start of a line, up to the name.
  void skip_header_start() {
    count('[');
    ++at_;
    if (peek() == '[') {
      count('[');
      ++at_;
    }
    take_all_of(" \t");
    if (at_ < text_.size() && peek() != ']' && is_ascii(peek()) && !begins_key(peek())) {
      fault_ = "[ must be followed by the name of a table, such as [limits]";
    }
  }

  // Anything may stand in a string, but what a backslash at the end of a line goes on to. Strings that are not closed
  // are for the library to refuse; one of a single line ends with it here.
  void skip_string() {
    const char quote = text_[at_];
    const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
    const bool many_lines = text_.substr(at_, 3) == three;
    const std::string_view closing = three.substr(0, many_lines ? 3 : 1);
    at_ += closing.size();
    while (at_ < text_.size() && fault_.empty()) {
      if (text_.substr(at_, closing.size()) == closing) {
        at_ += closing.size();
        // The string may end with up to two quotes of its own before the three that close it.
        for (int i = 0; many_lines && i < 2 && peek() == quote; ++i) ++at_;
        return;
      }
      if (text_[at_] == '\n' && !many_lines) return;
      if (text_[at_] == '\\' && quote == '"') {
        skip_escape(many_lines);
      } else {
        take();
      }
    }
  }

  void skip_escape(bool many_lines) {
    ++at_;
    const std::size_t after_backslash = at_;
    if (many_lines) take_all_of(" \t\r\n");
    if (many_lines && !is_ascii(peek())) {
      fault_ = "a backslash goes on to a character beyond ASCII; write that one as \\u and its four digits";
    } else if (at_ == after_backslash && at_ < text_.size()) {
      take();
    }
  }

  std::string_view text_;
  std::size_t at_;
  std::uint32_t line_ = 1;
  std::string open_;      // brackets and braces
  std::size_t dots_ = 0;  // in the key that is being read
  std::size_t number_end_ = 0;
  bool is_in_line_ = false;  // something but blanks was on this line
  std::string_view fault_;
};

}  // namespace

std::optional<TomlFault> find_toml_fault(std::string_view text) {
  return Scan(text).find_fault();
}

}  // namespace belljar
