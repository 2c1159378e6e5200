#include "egress/http_request.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace belljar::egress {
namespace {

constexpr std::size_t kMethodBytesMax = 32;
constexpr std::size_t kChunkLineBytesMax = 18;

bool is_token_character(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         kOthers.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

bool is_method_character(char c) {
  return (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

// Bytes beyond ASCII may stand in values; control characters but the tab may not.
bool is_value_character(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes a line up to CR LF; nothing where it has a CR, LF or NUL elsewhere, which servers read in different ways.
std::optional<std::string_view> take_line(std::string_view* rest) {
  const std::size_t end = rest->find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest->substr(0, end);
  if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) return std::nullopt;
  rest->remove_prefix(end + 2);
  return line;
}

bool read_request_line(std::string_view line, HttpHead* head) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return false;
  head->method = line.substr(0, first);
  head->target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  head->minor_version = version.back() == '1' ? 1 : 0;
  const bool is_plain = std::ranges::all_of(head->target, [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
  return is_token(head->method) && head->method.size() <= kMethodBytesMax && !head->target.empty() && is_plain;
}

// Headers of which two make it doubtful where the request goes or ends.
std::string_view check_unique(const HttpHead& head) {
  constexpr std::string_view kOnce[] = {"host",    "content-length", "transfer-encoding",
                                        "upgrade", "expect",         "proxy-authorization"};
  for (const std::string_view name : kOnce) {
    const auto same = [&](const HttpHeader& header) { return equal_without_case(header.name, name); };
    if (std::ranges::count_if(head.headers, same) > 1) return "a header that may stand once stands twice";
  }
  return {};
}

// Whether a word is a method, may become one, or is one with more behind it, in any case of letters: others belong to
// protocols of their own, which are not to wait for a line's end.
bool may_be_method(std::string_view word) {
  constexpr std::string_view kMethods[] = {"get",     "head",    "post",  "put",   "delete",
                                           "options", "connect", "trace", "patch", "query"};
  return std::ranges::any_of(kMethods, [word](std::string_view method) {
    const std::size_t size = std::min(word.size(), method.size());
    return equal_without_case(word.substr(0, size), method.substr(0, size));
  });
}

// In any case of letters.
bool names_http(std::string_view line) {
  constexpr std::string_view kName = "http/";
  for (std::size_t at = 0; at + kName.size() <= line.size(); ++at) {
    if (equal_without_case(line.substr(at, kName.size()), kName)) return true;
  }
  return false;
}

RequestReader::Event broken(std::string_view reason) {
  return {.kind = RequestReader::Kind::broken, .reason = reason};
}

}  // namespace

std::string_view read_http_headers(std::string_view lines, std::vector<HttpHeader>* headers) {
  constexpr std::size_t kUsualHeaders = 16;
  headers->reserve(kUsualHeaders);
  while (true) {
    const auto line = take_line(&lines);
    if (!line) return "a line of the head does not end as it must";
    if (line->empty()) return {};
    if (headers->size() == kHttpHeadersMax) return "too many headers";
    const std::size_t colon = line->find(':');
    if (colon == std::string_view::npos || !is_token(line->substr(0, colon))) return "a header's name is malformed";
    const HttpHeader header{line->substr(0, colon), trimmed(line->substr(colon + 1))};
    if (!std::ranges::all_of(header.value, is_value_character)) return "a header's value holds control characters";
    headers->push_back(header);
  }
}

bool equal_without_case(std::string_view a, std::string_view lower) {
  return a.size() == lower.size() && std::ranges::equal(a, lower, [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? static_cast<char>(x + 32) : x) == y;
         });
}

bool is_read_as(std::string_view header, std::string_view lower) {
  std::string name(header);
  std::string wanted(lower);
  std::ranges::replace(name, '_', '-');
  std::ranges::replace(wanted, '_', '-');
  return equal_without_case(name, wanted);
}

std::optional<std::string_view> HttpHead::header(std::string_view name) const {
  const auto found =
      std::ranges::find_if(headers, [&](const HttpHeader& header) { return equal_without_case(header.name, name); });
  if (found == headers.end()) return std::nullopt;
  return found->value;
}

HttpGuess guess_http(std::string_view bytes) {
  constexpr std::string_view kVersion2 = "PRI * HTTP/2";
  if (bytes.starts_with(kVersion2)) return HttpGuess::version_2;
  // Servers skip empty lines before a request (RFC 9112, section 2.2), and some take any word for a method.
  const std::size_t begin = std::min(bytes.find_first_not_of("\r\n"), bytes.size());
  const std::string_view text = bytes.substr(begin);
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  if (!std::ranges::all_of(line, [](char c) { return c == '\r' || is_value_character(c); })) return HttpGuess::no;
  const auto method = static_cast<std::size_t>(std::ranges::find_if_not(line, is_token_character) - line.begin());
  const bool has_blank = method < line.size() && (line[method] == ' ' || line[method] == '\t');
  if (method > kMethodBytesMax || (method < line.size() && (method == 0 || !has_blank))) return HttpGuess::no;
  const std::string_view word = line.substr(0, method);
  const bool is_usual_word = std::ranges::all_of(word, is_method_character);
  if (!is_usual_word && !may_be_method(word)) return HttpGuess::no;
  if (end == std::string_view::npos) return bytes.size() <= kHttpHeadBytesMax ? HttpGuess::maybe : HttpGuess::no;
  if (!has_blank || !names_http(line.substr(method))) return HttpGuess::no;
  const bool is_plain =
      begin == 0 && is_usual_word && line[method] == ' ' && line.find(" HTTP/") != std::string_view::npos;
  return is_plain ? HttpGuess::yes : HttpGuess::disguised;
}

RequestReader::Event RequestReader::next(std::string_view input) {
  if (input.empty()) return {};
  switch (state_) {
    case State::head:
      return read_head(input);
    case State::chunk_size:
      return read_chunk_size(input);
    case State::trailers:
      return read_trailers(input);
    case State::chunk_end:
      if (input.size() < 2) return {};
      if (!input.starts_with("\r\n")) return broken("a chunk is longer than it says");
      state_ = State::chunk_size;
      return {.kind = Kind::body, .size = 2};
    case State::fixed_body:
    case State::chunk_data:
      break;
  }
  const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
  left_ -= size;
  Event event{.kind = Kind::body, .size = size};
  if (left_ > 0) return event;
  event.ends_request = state_ == State::fixed_body;
  state_ = state_ == State::fixed_body ? State::head : State::chunk_end;
  return event;
}

RequestReader::Event RequestReader::read_head(std::string_view input) {
  const std::size_t end = input.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    // A bare line feed would otherwise be waited upon for ever.
    if (input.find("\n\n") != std::string_view::npos) return broken("a line of the head does not end as it must");
    return input.size() >= kHttpHeadBytesMax ? broken("the head is too long") : Event{};
  }
  Event event{.kind = Kind::head, .size = end + 4};
  if (event.size > kHttpHeadBytesMax) return broken("the head is too long");
  HttpHead& head = event.head;
  head.size = event.size;
  std::string_view rest = input.substr(0, event.size);
  const auto line = take_line(&rest);
  if (!line || !read_request_line(*line, &head)) return broken("the request line is malformed");
  if (const std::string_view fault = read_http_headers(rest, &head.headers); !fault.empty()) return broken(fault);
  if (const std::string_view fault = check_unique(head); !fault.empty()) return broken(fault);
  if (const std::string_view fault = begin_body(head); !fault.empty()) return broken(fault);
  event.ends_request = state_ == State::head;
  return event;
}

std::string_view RequestReader::begin_body(const HttpHead& head) {
  const auto length = head.header("content-length");
  const auto encoding = head.header("transfer-encoding");
  if (length && encoding) return "it has both Content-Length and Transfer-Encoding";
  if (encoding) {
    if (head.minor_version == 0) return "HTTP/1.0 has no Transfer-Encoding";
    if (!equal_without_case(*encoding, "chunked")) return "its Transfer-Encoding is not chunked alone";
    state_ = State::chunk_size;
    return {};
  }
  left_ = 0;
  if (length) {
    const auto [end, error] = std::from_chars(length->data(), length->data() + length->size(), left_);
    const bool is_number = error == std::errc{} && end == length->data() + length->size() && !length->empty();
    if (!is_number || left_ > INT64_MAX) return "its Content-Length is not a number";
  }
  state_ = left_ > 0 ? State::fixed_body : State::head;
  return {};
}

// Chunk extensions are not taken: nobody sends them, and servers differ in where they end.
RequestReader::Event RequestReader::read_chunk_size(std::string_view input) {
  const std::size_t end = input.find("\r\n");
  if (std::min(end, input.size() - 1) > kChunkLineBytesMax) return broken("the size of a chunk is malformed");
  if (end == std::string_view::npos) return {};
  const std::string_view line = input.substr(0, end);
  const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), left_, 16);
  const bool is_number = error == std::errc{} && stop == line.data() + line.size() && !line.empty();
  if (!is_number || left_ > INT64_MAX) return broken("the size of a chunk is malformed");
  state_ = left_ > 0 ? State::chunk_data : State::trailers;
  trailer_bytes_ = 0;
  return {.kind = Kind::body, .size = end + 2};
}

RequestReader::Event RequestReader::read_trailers(std::string_view input) {
  const std::size_t end = input.find("\r\n");
  if (end == std::string_view::npos) {
    return input.size() + trailer_bytes_ > kHttpHeadBytesMax ? broken("the trailers are too long") : Event{};
  }
  std::string_view rest = input;
  const auto line = take_line(&rest);
  trailer_bytes_ += end + 2;
  if (trailer_bytes_ > kHttpHeadBytesMax) return broken("the trailers are too long");
  if (!line) return broken("a trailer does not end as it must");
  if (line->empty()) {
    state_ = State::head;
    return {.kind = Kind::body, .size = 2, .ends_request = true};
  }
  const std::size_t colon = line->find(':');
  const std::string_view trailer = line->substr(0, std::min(colon, line->size()));
  if (colon == std::string_view::npos || !is_token(trailer)) return broken("a trailer is malformed");
  for (const std::string_view name : {"host", "content-length", "transfer-encoding"}) {
    if (equal_without_case(trailer, name)) return broken("a trailer may not change the framing");
  }
  Event event{.kind = Kind::body, .size = end + 2};
  event.trailer = trailer;
  return event;
}

}  // namespace belljar::egress
