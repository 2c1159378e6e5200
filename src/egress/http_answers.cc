#include "egress/http_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "egress/http_request.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kChunkLineBytesMax = 4096;

// "HTTP/1.1 200 OK"; nothing where it is no such line.
struct StatusLine {
  unsigned status = 0;
  unsigned minor_version = 0;
};
std::optional<StatusLine> read_status_line(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr std::size_t kLength = 12;
  if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) return std::nullopt;
  if (line.size() < kLength || !line.starts_with(kVersion) || line[8] != ' ') return std::nullopt;
  if ((line[7] != '0' && line[7] != '1') || (line.size() > kLength && line[kLength] != ' ')) return std::nullopt;
  StatusLine read{.minor_version = line[7] == '1' ? 1U : 0U};
  const auto [end, error] = std::from_chars(line.data() + 9, line.data() + kLength, read.status);
  if (error != std::errc{} || end != line.data() + kLength || read.status < 100) return std::nullopt;
  return read;
}

std::optional<std::uint64_t> read_number(std::string_view text, int base) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  const bool is_number = error == std::errc{} && end == text.data() + text.size() && !text.empty();
  return is_number && number <= INT64_MAX ? std::optional(number) : std::nullopt;
}

}  // namespace

void AnswerFilter::expect(std::string_view method, bool may_switch) {
  expected_.push_back({method == "HEAD", may_switch});
}

AnswerFilter::Step AnswerFilter::fail(std::string_view why) {
  fault_ = why;
  return Step::failed;
}

bool AnswerFilter::feed(std::string_view bytes, std::string* out) {
  if (!fault_.empty()) return false;
  input_.append(bytes);
  Step last = Step::goes_on;
  while (last == Step::goes_on && taken_ < input_.size()) last = step(out);
  input_.erase(0, taken_);
  taken_ = 0;
  return last != Step::failed;
}

bool AnswerFilter::finish(std::string* out) {
  if (!fault_.empty()) return false;
  finish_body(out);
  const bool is_whole = state_ == State::to_end || state_ == State::switched || is_idle();
  if (state_ == State::to_end) state_ = State::head;
  return is_whole;
}

AnswerFilter::Step AnswerFilter::step(std::string* out) {
  switch (state_) {
    case State::head:
      return read_head(out);
    case State::chunk_size:
      return read_chunk_size(out);
    case State::trailers:
      return read_trailers(out);
    case State::chunk_end:
      if (input_.size() - taken_ < 2) return Step::needs_more;
      if (input_.compare(taken_, 2, "\r\n") != 0) return fail("a chunk is longer than it says");
      taken_ += 2;
      state_ = State::chunk_size;
      return Step::goes_on;
    case State::switched:
      // A frame must not wait for the next one, so a value is found here only where it comes in one piece.
      mask_.feed(std::string_view(input_).substr(taken_), out);
      mask_.finish(out);
      taken_ = input_.size();
      return Step::goes_on;
    case State::fixed:
    case State::to_end:
    case State::chunk_data:
      break;
  }
  return pass_data(out);
}

AnswerFilter::Step AnswerFilter::pass_data(std::string* out) {
  std::string_view data = std::string_view(input_).substr(taken_);
  if (state_ != State::to_end)
    data = data.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, data.size())));
  taken_ += data.size();
  if (state_ == State::chunk_data) {
    std::string masked_data;
    mask_.feed(data, &masked_data);
    put_chunk(masked_data, out);
  } else {
    mask_.feed(data, out);
  }
  if (state_ == State::to_end) return Step::goes_on;
  left_ -= data.size();
  if (left_ > 0) return Step::goes_on;
  if (state_ == State::fixed) mask_.finish(out);
  state_ = state_ == State::fixed ? State::head : State::chunk_end;
  return Step::goes_on;
}

void AnswerFilter::put_chunk(std::string_view data, std::string* out) const {
  if (!data.empty()) *out += fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

// Gives what the mask has kept of the body.
void AnswerFilter::finish_body(std::string* out) {
  const bool is_chunked = state_ == State::chunk_size || state_ == State::chunk_data || state_ == State::chunk_end;
  if (!is_chunked) return mask_.finish(out);
  std::string last;
  mask_.finish(&last);
  put_chunk(last, out);
}

AnswerFilter::Step AnswerFilter::read_head(std::string* out) {
  const std::string_view rest = std::string_view(input_).substr(taken_);
  if (expected_.empty()) return fail("an answer came to no request");
  const std::size_t end = rest.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    // A bare line feed would otherwise be waited upon for ever.
    if (rest.find("\n\n") != std::string_view::npos) return fail("a line of the head does not end as it must");
    return rest.size() > kHttpHeadBytesMax ? fail("the head is too long") : Step::needs_more;
  }
  const std::string_view head = rest.substr(0, end + 4);
  if (head.size() > kHttpHeadBytesMax) return fail("the head is too long");
  const auto line = read_status_line(head.substr(0, head.find("\r\n")));
  if (!line) return fail("the status line is malformed");
  std::vector<HttpHeader> headers;
  const std::string_view lines = head.substr(head.find("\r\n") + 2);
  if (const std::string_view wrong = read_http_headers(lines, &headers); !wrong.empty()) return fail(wrong);
  taken_ += head.size();
  *out += masked(values_, head);
  if (line->status == 101) {
    if (!expected_.front().may_switch) return fail("it goes on with a protocol that was not asked for");
    expected_.pop_front();
    state_ = State::switched;
    return Step::goes_on;
  }
  if (line->status < 200) return Step::goes_on;  // the answer is still to come
  const Step begun = begin_body(line->status, headers);
  expected_.pop_front();
  return begun;
}

// RFC 9112, 6.3.
AnswerFilter::Step AnswerFilter::begin_body(unsigned status, std::span<const HttpHeader> headers) {
  std::optional<std::string_view> length;
  std::optional<std::string_view> encoding;
  for (const HttpHeader& header : headers) {
    if (equal_without_case(header.name, "content-length")) {
      if (length && *length != header.value) return fail("it has two lengths");
      length = header.value;
    }
    if (!equal_without_case(header.name, "transfer-encoding")) continue;
    if (encoding) return fail("it has two transfer encodings");
    encoding = header.value;
  }
  if (expected_.front().is_head_request || status == 204 || status == 304) return Step::goes_on;
  if (encoding) {
    if (length || !equal_without_case(*encoding, "chunked")) return fail("its Transfer-Encoding is not chunked alone");
    state_ = State::chunk_size;
    return Step::goes_on;
  }
  if (!length) {
    state_ = State::to_end;
    return Step::goes_on;
  }
  const auto number = read_number(*length, 10);
  if (!number) return fail("its Content-Length is not a number");
  left_ = *number;
  if (left_ > 0) state_ = State::fixed;
  return Step::goes_on;
}

// Extensions are left out: they belong to this hop (RFC 9112, 7.1.1).
AnswerFilter::Step AnswerFilter::read_chunk_size(std::string* out) {
  const std::string_view rest = std::string_view(input_).substr(taken_);
  const std::size_t end = rest.find("\r\n");
  if (end == std::string_view::npos) {
    return rest.size() > kChunkLineBytesMax + 1 ? fail("the size of a chunk is malformed") : Step::needs_more;
  }
  std::string_view size = rest.substr(0, std::min(rest.find(';'), end));
  while (size.ends_with(' ') || size.ends_with('\t')) size.remove_suffix(1);
  const auto number = read_number(size, 16);
  if (!number || end > kChunkLineBytesMax) return fail("the size of a chunk is malformed");
  taken_ += end + 2;
  left_ = *number;
  if (left_ > 0) {
    state_ = State::chunk_data;
    return Step::goes_on;
  }
  finish_body(out);
  *out += "0\r\n";
  state_ = State::trailers;
  return Step::goes_on;
}

AnswerFilter::Step AnswerFilter::read_trailers(std::string* out) {
  const std::string_view rest = std::string_view(input_).substr(taken_);
  std::size_t size = 2;
  if (!rest.starts_with("\r\n")) {
    const std::size_t end = rest.find("\r\n\r\n");
    if (end == std::string_view::npos) {
      return rest.size() > kHttpHeadBytesMax ? fail("the trailers are too long") : Step::needs_more;
    }
    size = end + 4;
    if (size > kHttpHeadBytesMax) return fail("the trailers are too long");
    std::vector<HttpHeader> trailers;
    if (const std::string_view wrong = read_http_headers(rest.substr(0, size), &trailers); !wrong.empty()) {
      return fail(wrong);
    }
  }
  *out += masked(values_, rest.substr(0, size));
  taken_ += size;
  state_ = State::head;
  return Step::goes_on;
}

}  // namespace belljar::egress
