// UTF-8 as Belljar meets it in output of untrusted programs: checked, cut without halving a character, and made
// harmless for a terminal. Nothing here allocates more than a small factor of its input, and nothing fails.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belljar {

// One step of decoding, as the Unicode Standard (3.9, table 3-7) defines well-formed sequences.
struct Utf8Step {
  enum class Kind {
    character,   // a well-formed sequence; `code_point` is set
    invalid,     // `length` bytes that can't be part of a character ("maximal subpart")
    unfinished,  // all that is left is the beginning of a character
  };
  Kind kind;
  std::size_t length;  // bytes taken, at least 1
  char32_t code_point = 0;
};

// Decodes the first character of `text`, which must not be empty.
Utf8Step decode_utf8(std::string_view text);

bool is_utf8(std::string_view text);

// The length of `text` without an unfinished character at its end: where to cut when more would have followed.
std::size_t utf8_cut(std::string_view text);

// The longest beginning of `text` that has at most `bytes_max` bytes and does not end inside a character.
std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max);

// Control characters (C0, DEL, C1) and the characters that change the order in which the text around them is shown
// (bidirectional overrides and isolates).
bool is_active_in_terminal(char32_t c);

// Makes a stream of bytes safe to write to a terminal, chunk by chunk: what comes out is UTF-8 and holds no active
// character but \n and \t. Active characters (C1 in both of its encodings) and invalid bytes become visible: \x1b,
// \u009d, \u202e, \xff. CR LF and a lone CR
// both become a line end, so that no text can be written over text that was shown before.
class TerminalNeutraliser {
 public:
  // Appends the harmless form of `chunk` to `out`. Up to three bytes of an unfinished character are kept for the next
  // call.
  void feed(std::string_view chunk, std::string& out);

  // Appends what is still kept. Call once, at the end of the stream.
  void finish(std::string& out);

 private:
  std::string unfinished_;
  bool after_carriage_return_ = false;
};

// `text` in double quotes for an error message: one line, harmless for a terminal, \n \r \t " and \ escaped too, and
// cut with "..." where it is longer than `bytes_max`.
std::string quote(std::string_view text, std::size_t bytes_max = 120);

// The same without the quotes and without escaping " and \: for names and texts of others inside a message.
std::string one_line(std::string_view text, std::size_t bytes_max = 400);

}  // namespace belljar
