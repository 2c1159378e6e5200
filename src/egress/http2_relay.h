// HTTP/2 (RFC 9113) on both sides of the relay: each request is decided, and goes out on a stream of its own; its
// answer comes back masked. Frames, header compression and flow control are libnghttp2's. Bytes that one side has not
// taken are not acknowledged to the other, so what is kept here is bounded by the windows.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "egress/mask.h"
#include "egress/secrets.h"

namespace belljar::egress {

// A request as its pseudo headers have it; `host` is the header, where there is one.
struct Http2Request {
  std::string_view method;
  std::string_view scheme;
  std::string_view authority;
  std::string_view host;
  std::string_view path;
};

struct RequestVerdict {
  unsigned refused_status = 0;  // 0: it goes on
  std::string reason;
  std::vector<Secrets::Header> headers;  // in place of those of the same names
};

class Http2Relay {
 public:
  using Decide = std::function<RequestVerdict(const Http2Request&)>;

  // `values` outlive it. Null where there is no memory.
  static std::unique_ptr<Http2Relay> create(std::span<const std::string> values, Decide decide);
  ~Http2Relay();
  Http2Relay(const Http2Relay&) = delete;
  Http2Relay& operator=(const Http2Relay&) = delete;

  // What has come; false where the peer broke the protocol.
  bool from_program(std::string_view bytes) { return receive(program_, bytes); }
  bool from_server(std::string_view bytes) { return receive(server_, bytes); }

  // Appends what is to be sent, until `out` has `bytes_max` or somewhat more; false where that failed.
  bool to_program(std::string* out, std::size_t bytes_max) { return send(program_.session, out, bytes_max); }
  bool to_server(std::string* out, std::size_t bytes_max) { return send(server_.session, out, bytes_max); }

  // One of the sides wants nothing more.
  bool is_over() const;

  // Requests that were reset since the last look, without a word to Decide.
  struct Resets {
    std::size_t malformed = 0;
    std::size_t too_long = 0;
  };
  Resets take_resets() { return std::exchange(resets_, {}); }

  // Why the relay gave the connection up; empty: it did not.
  std::string_view fault() const { return fault_; }

 private:
  struct Field {
    std::string name;
    std::string value;
    std::uint8_t flags = NGHTTP2_NV_FLAG_NONE;
  };
  // One way of a stream.
  struct Way {
    std::string bytes;       // to be sent
    std::size_t taken = 0;   // of their beginning
    std::size_t unread = 0;  // what the sender has sent and was not told that it may send more for
    bool is_ended = false;
    std::vector<Field> trailers;
  };
  struct Stream {
    std::int32_t program_id = -1;
    std::int32_t server_id = -1;  // negative: it never went out
    std::vector<Field> fields;    // that are being received, from either side
    std::size_t field_bytes = 0;
    Way up;
    Way down;
    Mask mask;
    std::vector<std::string> secret_names;  // of the headers that the relay gave
    bool is_answered = false;
    bool is_open_to_program = true;
    bool is_open_to_server = false;
  };
  struct Side {
    Http2Relay* relay = nullptr;
    nghttp2_session* session = nullptr;
  };

  Http2Relay(std::span<const std::string> values, Decide decide) : values_(values), decide_(std::move(decide)) {}
  bool start();
  static bool receive(const Side& side, std::string_view bytes);
  static bool send(nghttp2_session* session, std::string* out, std::size_t bytes_max);

  Stream* stream_of(const Side& side, std::int32_t id);
  void take_field(Stream& stream, std::string_view name, std::string_view value) const;
  void take_request(Stream& stream, bool is_whole);
  void refuse(Stream& stream, const RequestVerdict& verdict);
  void forward(Stream& stream, const RequestVerdict& verdict, bool is_whole);
  void take_answer(Stream& stream, bool is_whole);
  void end_way(const Side& side, Stream& stream);
  void take_data(const Side& side, Stream& stream, std::string_view bytes);
  ssize_t give_data(const Side& side, std::int32_t id, std::span<std::uint8_t> room, std::uint32_t* flags);
  void drop_way(const Side& sender, std::int32_t id, Way& way);
  void close_stream(const Side& side, std::int32_t id, std::uint32_t error);
  enum class Fault { flood, breach };
  void note_fault(const Side& side, Fault fault);

  // The callbacks of nghttp2; `user` is the Side.
  static nghttp2_session_callbacks* make_callbacks();
  static int on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const std::uint8_t* name, size_t name_size,
                       const std::uint8_t* value, size_t value_size, std::uint8_t flags, void* user);
  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static int on_invalid(nghttp2_session* session, const nghttp2_frame* frame, int error, void* user);
  static int on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static int on_data(nghttp2_session* session, std::uint8_t flags, std::int32_t id, const std::uint8_t* data,
                     size_t size, void* user);
  static int on_close(nghttp2_session* session, std::int32_t id, std::uint32_t error, void* user);
  static ssize_t on_read(nghttp2_session* session, std::int32_t id, std::uint8_t* room, size_t size,
                         std::uint32_t* flags, nghttp2_data_source* source, void* user);

  std::span<const std::string> values_;
  Decide decide_;
  Side program_;
  Side server_;
  std::string_view fault_;
  Resets resets_;
  std::unordered_map<std::int32_t, std::unique_ptr<Stream>> streams_;  // by program_id
  std::unordered_map<std::int32_t, Stream*> by_server_;                // by server_id
};

}  // namespace belljar::egress
