// HTTP/1 answers on one connection (RFC 9112), read so that values in their heads and bodies can be masked: a value
// that lies in two chunks is found too. What comes out has the same heads, and bodies of the same length.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "egress/http_request.h"
#include "egress/mask.h"

namespace belljar::egress {

class AnswerFilter {
 public:
  // `values` outlive it.
  explicit AnswerFilter(std::span<const std::string> values) : values_(values), mask_(values) {}

  // A request went out, and an answer will come. `may_switch`: it asks for another protocol.
  void expect(std::string_view method, bool may_switch);

  // Appends to `out` what goes on. False: the answers can't be followed (fault()).
  bool feed(std::string_view bytes, std::string* out);

  // The server has said all. False: an answer was cut short.
  bool finish(std::string* out);

  // An answer was 101: what comes now is of another protocol, and only masked.
  bool is_switched() const { return state_ == State::switched; }

  // Every request has its answer.
  bool is_idle() const { return state_ == State::head && expected_.empty() && input_.empty(); }

  std::string_view fault() const { return fault_; }

 private:
  enum class State { head, fixed, to_end, chunk_size, chunk_data, chunk_end, trailers, switched };
  struct Expected {
    bool is_head_request;
    bool may_switch;
  };
  enum class Step { goes_on, needs_more, failed };

  Step step(std::string* out);
  Step read_head(std::string* out);
  Step begin_body(unsigned status, std::span<const HttpHeader> headers);
  Step read_chunk_size(std::string* out);
  Step read_trailers(std::string* out);
  Step pass_data(std::string* out);
  void put_chunk(std::string_view data, std::string* out) const;
  void finish_body(std::string* out);
  Step fail(std::string_view why);

  std::span<const std::string> values_;
  Mask mask_;
  State state_ = State::head;
  std::deque<Expected> expected_;
  std::string input_;       // not used yet
  std::size_t taken_ = 0;   // of its beginning
  std::uint64_t left_ = 0;  // bytes of the body, or of the chunk
  std::string_view fault_;
};

}  // namespace belljar::egress
