// HTTP/1 requests on one connection (RFC 9112), read strictly: where one ends and the next begins must be beyond doubt
// for every server, so what some servers read another way is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::egress {

inline constexpr std::size_t kHttpHeadBytesMax = std::size_t{64} << 10;
inline constexpr std::size_t kHttpHeadersMax = 256;

struct HttpHeader {
  std::string_view name;  // as it came
  std::string_view value;
};

struct HttpHead {
  std::string_view method;
  std::string_view target;
  unsigned minor_version = 1;  // of HTTP/1
  std::vector<HttpHeader> headers;
  std::size_t size = 0;  // of the head with its empty line

  // The value of the only header of this name (in lower case); nothing where there is none. Repeated ones that matter
  // are refused before.
  std::optional<std::string_view> header(std::string_view name) const;
};

// The lines of a head after its first, up to the empty one; returns what is wrong with them, or nothing.
std::string_view read_http_headers(std::string_view lines, std::vector<HttpHeader>* headers);

bool equal_without_case(std::string_view a, std::string_view lower);

// The same, with _ for -: programs behind CGI (RFC 3875, 4.1.18) can't tell them apart.
bool is_read_as(std::string_view header, std::string_view lower);

// Whether the bytes may be, or become, the first line of an HTTP/1 request. `disguised`: some servers would read it as
// one, and others would not.
enum class HttpGuess { no, maybe, yes, disguised, version_2 };
HttpGuess guess_http(std::string_view bytes);

class RequestReader {
 public:
  enum class Kind {
    more,    // nothing to do before more bytes come
    head,    // a request begins; `head` has views into the input. Take `size` bytes.
    body,    // `size` bytes belong to the request that began last
    broken,  // `reason` says why the connection can't go on
  };
  struct Event {
    Kind kind = Kind::more;
    std::size_t size = 0;
    bool ends_request = false;  // with these bytes the request is whole
    HttpHead head;
    std::string_view trailer;  // the name of the trailer (RFC 9112, 7.1.2) that these bytes of a body are
    std::string_view reason;
  };

  // Looks at the beginning of `input`, which is what was not taken yet.
  Event next(std::string_view input);

 private:
  enum class State { head, fixed_body, chunk_size, chunk_data, chunk_end, trailers };

  Event read_head(std::string_view input);
  Event read_chunk_size(std::string_view input);
  Event read_trailers(std::string_view input);
  std::string_view begin_body(const HttpHead& head);

  State state_ = State::head;
  std::uint64_t left_ = 0;  // bytes of the body, or of the chunk
  std::size_t trailer_bytes_ = 0;
};

}  // namespace belljar::egress
