#include "egress/http2_relay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace belljar::egress {
namespace {

constexpr std::uint32_t kStreamsMax = 100;
constexpr std::uint32_t kStreamWindowBytes = 256U << 10;
constexpr std::int32_t kWindowBytes = 512 << 10;

struct CallbacksFree {
  void operator()(nghttp2_session_callbacks* callbacks) const { ::nghttp2_session_callbacks_del(callbacks); }
};
struct OptionFree {
  void operator()(nghttp2_option* option) const { ::nghttp2_option_del(option); }
};

// The views into `name` and `value` are copied by the library.
nghttp2_nv make_field(std::string_view name, std::string_view value, std::uint8_t flags = NGHTTP2_NV_FLAG_NONE) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));  // NOLINT(*-const-cast)
  };
  return {bytes(name), bytes(value), name.size(), value.size(), flags};
}

std::string_view view(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

template <typename Field>
nghttp2_nv make_field(const Field& field) {
  return make_field(field.name, field.value, field.flags);
}

template <typename Fields>
std::string_view value_of(const Fields& fields, std::string_view name) {
  for (const auto& field : fields) {
    if (field.name == name) return field.value;
  }
  return {};
}

}  // namespace

std::unique_ptr<Http2Relay> Http2Relay::create(std::span<const std::string> values, Decide decide) {
  std::unique_ptr<Http2Relay> relay(new Http2Relay(values, std::move(decide)));
  return relay->start() ? std::move(relay) : nullptr;
}

Http2Relay::~Http2Relay() {
  ::nghttp2_session_del(program_.session);
  ::nghttp2_session_del(server_.session);
}

nghttp2_session_callbacks* Http2Relay::make_callbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  if (::nghttp2_session_callbacks_new(&callbacks) != 0) return nullptr;
  ::nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, &Http2Relay::on_begin_headers);
  ::nghttp2_session_callbacks_set_on_header_callback(callbacks, &Http2Relay::on_header);
  ::nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &Http2Relay::on_frame);
  ::nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, &Http2Relay::on_invalid);
  ::nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, &Http2Relay::on_sent);
  ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &Http2Relay::on_data);
  ::nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Http2Relay::on_close);
  return callbacks;
}

bool Http2Relay::start() {
  const std::unique_ptr<nghttp2_session_callbacks, CallbacksFree> callbacks(make_callbacks());
  nghttp2_option* made = nullptr;
  if (!callbacks || ::nghttp2_option_new(&made) != 0) return false;
  const std::unique_ptr<nghttp2_option, OptionFree> option(made);
  ::nghttp2_option_set_no_auto_window_update(option.get(), 1);
  program_.relay = server_.relay = this;
  if (::nghttp2_session_server_new2(&program_.session, callbacks.get(), &program_, option.get()) != 0 ||
      ::nghttp2_session_client_new2(&server_.session, callbacks.get(), &server_, option.get()) != 0) {
    return false;
  }
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindowBytes},
                                             {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kHttpHeadBytesMax},
                                             {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kStreamsMax},
                                             {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
  constexpr std::size_t kOfServers = 3;  // without the last
  return ::nghttp2_submit_settings(program_.session, NGHTTP2_FLAG_NONE, settings, kOfServers) == 0 &&
         ::nghttp2_submit_settings(server_.session, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0 &&
         ::nghttp2_session_set_local_window_size(program_.session, NGHTTP2_FLAG_NONE, 0, kWindowBytes) == 0 &&
         ::nghttp2_session_set_local_window_size(server_.session, NGHTTP2_FLAG_NONE, 0, kWindowBytes) == 0;
}

bool Http2Relay::receive(const Side& side, std::string_view bytes) {
  const ssize_t taken =
      ::nghttp2_session_mem_recv(side.session, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken == static_cast<ssize_t>(bytes.size())) return true;
  const bool is_flood = taken == NGHTTP2_ERR_FLOODED || taken == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS;
  side.relay->note_fault(side, is_flood ? Fault::flood : Fault::breach);
  return false;
}

// The first counts: what follows comes of it.
void Http2Relay::note_fault(const Side& side, Fault fault) {
  if (!fault_.empty()) return;
  const bool is_of_program = &side == &program_;
  if (fault == Fault::flood) {
    fault_ = is_of_program ? "a flood of HTTP/2 frames (PING, SETTINGS, RST_STREAM, CONTINUATION) from the program"
                           : "a flood of HTTP/2 frames (PING, SETTINGS, RST_STREAM, CONTINUATION) from the server";
  } else {
    fault_ = is_of_program ? "HTTP/2 that breaks its rules, from the program"
                           : "HTTP/2 that breaks its rules, from the server";
  }
}

bool Http2Relay::send(nghttp2_session* session, std::string* out, std::size_t bytes_max) {
  while (out->size() < bytes_max) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = ::nghttp2_session_mem_send(session, &bytes);
    if (size < 0) return false;
    if (size == 0) break;
    out->append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
  return true;
}

bool Http2Relay::is_over() const {
  const auto is_done = [](nghttp2_session* session) {
    return ::nghttp2_session_want_read(session) == 0 && ::nghttp2_session_want_write(session) == 0;
  };
  return is_done(program_.session) || (is_done(server_.session) && streams_.empty());
}

Http2Relay::Stream* Http2Relay::stream_of(const Side& side, std::int32_t id) {
  if (&side == &program_) {
    const auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second.get();
  }
  const auto found = by_server_.find(id);
  return found == by_server_.end() ? nullptr : found->second;
}

// --- Heads
// ------------------------------------------------------------------------------------------------------------

int Http2Relay::on_begin_headers(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
  const Side& side = *static_cast<Side*>(user);
  Http2Relay& relay = *side.relay;
  const std::int32_t id = frame->hd.stream_id;
  if (&side == &relay.program_ && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
    auto stream = std::make_unique<Stream>(Stream{.program_id = id, .mask = Mask(relay.values_)});
    relay.streams_[id] = std::move(stream);
  }
  if (Stream* const stream = relay.stream_of(side, id)) {
    stream->fields.clear();
    stream->field_bytes = 0;
  }
  return 0;
}

int Http2Relay::on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame, const std::uint8_t* name,
                          size_t name_size, const std::uint8_t* value, size_t value_size, std::uint8_t flags,
                          void* user) {
  const Side& side = *static_cast<Side*>(user);
  Stream* const stream = side.relay->stream_of(side, frame->hd.stream_id);
  if (stream == nullptr) return 0;
  constexpr std::size_t kFieldOverheadBytes = 32;  // RFC 9113, 6.5.2
  stream->field_bytes += name_size + value_size + kFieldOverheadBytes;
  const bool is_too_much = stream->field_bytes > kHttpHeadBytesMax || stream->fields.size() == kHttpHeadersMax;
  if (is_too_much) {
    if (&side == &side.relay->program_) ++side.relay->resets_.too_long;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // resets the stream
  }
  const auto never_indexed = static_cast<std::uint8_t>(flags & NGHTTP2_NV_FLAG_NO_INDEX);
  if (&side == &side.relay->server_) {
    stream->fields.push_back({masked(side.relay->values_, view(name, name_size)),
                              masked(side.relay->values_, view(value, value_size)), never_indexed});
  } else {
    stream->fields.push_back({std::string(view(name, name_size)), std::string(view(value, value_size)), never_indexed});
  }
  return 0;
}

int Http2Relay::on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
  const Side& side = *static_cast<Side*>(user);
  Http2Relay& relay = *side.relay;
  const bool is_from_program = &side == &relay.program_;
  const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (frame->hd.type == NGHTTP2_GOAWAY && !is_from_program) {
    // What the program asks from now on is to go over a new connection.
    ::nghttp2_submit_goaway(relay.program_.session, NGHTTP2_FLAG_NONE,
                            ::nghttp2_session_get_last_proc_stream_id(relay.program_.session), NGHTTP2_NO_ERROR,
                            nullptr, 0);
    return 0;
  }
  if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
  Stream* const stream = relay.stream_of(side, frame->hd.stream_id);
  if (stream == nullptr) return 0;
  if (frame->hd.type == NGHTTP2_DATA) {
    if (is_end) relay.end_way(side, *stream);
    return 0;
  }
  if (is_from_program && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
    relay.take_request(*stream, is_end);
  } else if (!is_from_program && !stream->is_answered) {
    relay.take_answer(*stream, is_end);
  } else if (is_end) {
    Way& way = is_from_program ? stream->up : stream->down;
    way.trailers = std::move(stream->fields);
    if (is_from_program) {
      std::erase_if(way.trailers, [&](const Field& field) {
        return std::ranges::any_of(stream->secret_names,
                                   [&](const auto& name) { return is_read_as(field.name, name); });
      });
    }
    relay.end_way(side, *stream);
  } else {
    ::nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_PROTOCOL_ERROR);
  }
  return 0;
}

int Http2Relay::on_invalid(nghttp2_session* /*session*/, const nghttp2_frame* frame, int /*error*/, void* user) {
  const Side& side = *static_cast<Side*>(user);
  if (&side == &side.relay->program_ && frame->hd.type == NGHTTP2_HEADERS) ++side.relay->resets_.malformed;
  return 0;
}

// The library tells of some faults only by the GOAWAY with which it ends a session: INTERNAL_ERROR of too many streams
// that were reset.
int Http2Relay::on_sent(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
  if (frame->hd.type != NGHTTP2_GOAWAY || frame->goaway.error_code == NGHTTP2_NO_ERROR) return 0;
  const Side& side = *static_cast<Side*>(user);
  const bool is_flood =
      frame->goaway.error_code == NGHTTP2_INTERNAL_ERROR || frame->goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM;
  side.relay->note_fault(side, is_flood ? Fault::flood : Fault::breach);
  return 0;
}

void Http2Relay::take_request(Stream& stream, bool is_whole) {
  const Http2Request request{.method = value_of(stream.fields, ":method"),
                             .scheme = value_of(stream.fields, ":scheme"),
                             .authority = value_of(stream.fields, ":authority"),
                             .host = value_of(stream.fields, "host"),
                             .path = value_of(stream.fields, ":path")};
  RequestVerdict verdict = decide_(request);
  if (verdict.refused_status != 0) {
    refuse(stream, verdict);
  } else {
    forward(stream, verdict, is_whole);
  }
  for (Secrets::Header& header : verdict.headers) wipe(&header.value);
  stream.fields.clear();
}

void Http2Relay::refuse(Stream& stream, const RequestVerdict& verdict) {
  stream.is_answered = true;
  stream.down.bytes = fmt::format("belljar: {}\n", verdict.reason);
  stream.down.is_ended = true;
  const std::string status = std::to_string(verdict.refused_status);
  const std::string size = std::to_string(stream.down.bytes.size());
  const nghttp2_nv fields[] = {make_field(":status", status), make_field("content-type", "text/plain; charset=utf-8"),
                               make_field("content-length", size)};
  const nghttp2_data_provider data{{.ptr = nullptr}, &Http2Relay::on_read};
  ::nghttp2_submit_response(program_.session, stream.program_id, fields, std::size(fields), &data);
}

void Http2Relay::forward(Stream& stream, const RequestVerdict& verdict, bool is_whole) {
  std::vector<nghttp2_nv> fields;
  for (const Field& field : stream.fields) {
    const auto is_replaced = [&](const Secrets::Header& header) { return is_read_as(field.name, header.name); };
    if (std::ranges::none_of(verdict.headers, is_replaced)) fields.push_back(make_field(field));
  }
  for (const Secrets::Header& header : verdict.headers) {
    fields.push_back(make_field(header.name, header.value, NGHTTP2_NV_FLAG_NO_INDEX));
    stream.secret_names.push_back(header.name);
  }
  stream.up.is_ended = is_whole;
  const nghttp2_data_provider data{{.ptr = nullptr}, &Http2Relay::on_read};
  stream.server_id = ::nghttp2_submit_request(server_.session, nullptr, fields.data(), fields.size(),
                                              is_whole ? nullptr : &data, nullptr);
  if (stream.server_id >= 0) {
    stream.is_open_to_server = true;
    by_server_[stream.server_id] = &stream;
    return;
  }
  stream.server_id = -1;
  ::nghttp2_submit_rst_stream(program_.session, NGHTTP2_FLAG_NONE, stream.program_id, NGHTTP2_REFUSED_STREAM);
}

void Http2Relay::take_answer(Stream& stream, bool is_whole) {
  std::vector<nghttp2_nv> fields;
  for (const Field& field : stream.fields) fields.push_back(make_field(field));
  const bool is_interim = value_of(stream.fields, ":status").starts_with('1');
  if (is_interim) {
    ::nghttp2_submit_headers(program_.session, NGHTTP2_FLAG_NONE, stream.program_id, nullptr, fields.data(),
                             fields.size(), nullptr);
  } else {
    stream.is_answered = true;
    stream.down.is_ended = is_whole;
    const nghttp2_data_provider data{{.ptr = nullptr}, &Http2Relay::on_read};
    ::nghttp2_submit_response(program_.session, stream.program_id, fields.data(), fields.size(),
                              is_whole ? nullptr : &data);
  }
  stream.fields.clear();
}

// --- Bodies
// -----------------------------------------------------------------------------------------------------------

int Http2Relay::on_data(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t id, const std::uint8_t* data,
                        size_t size, void* user) {
  const Side& side = *static_cast<Side*>(user);
  Stream* const stream = side.relay->stream_of(side, id);
  const bool is_from_program = &side == &side.relay->program_;
  if (stream != nullptr && (is_from_program ? stream->is_open_to_server : stream->is_open_to_program)) {
    side.relay->take_data(side, *stream, view(data, size));
  } else {
    ::nghttp2_session_consume(session, id, size);
  }
  return 0;
}

void Http2Relay::take_data(const Side& side, Stream& stream, std::string_view bytes) {
  if (&side == &program_) {
    stream.up.bytes.append(bytes);
    stream.up.unread += bytes.size();
    ::nghttp2_session_resume_data(server_.session, stream.server_id);
  } else {
    stream.mask.feed(bytes, &stream.down.bytes);
    stream.down.unread += bytes.size();
    ::nghttp2_session_resume_data(program_.session, stream.program_id);
  }
}

void Http2Relay::end_way(const Side& side, Stream& stream) {
  if (&side == &program_) {
    stream.up.is_ended = true;
    if (stream.is_open_to_server) ::nghttp2_session_resume_data(server_.session, stream.server_id);
  } else {
    stream.mask.finish(&stream.down.bytes);
    stream.down.is_ended = true;
    ::nghttp2_session_resume_data(program_.session, stream.program_id);
  }
}

ssize_t Http2Relay::on_read(nghttp2_session* /*session*/, std::int32_t id, std::uint8_t* room, size_t size,
                            std::uint32_t* flags, nghttp2_data_source* /*source*/, void* user) {
  const Side& side = *static_cast<Side*>(user);
  return side.relay->give_data(side, id, {room, size}, flags);
}

ssize_t Http2Relay::give_data(const Side& side, std::int32_t id, std::span<std::uint8_t> room, std::uint32_t* flags) {
  Stream* const stream = stream_of(side, id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  const bool is_up = &side == &server_;
  Way& way = is_up ? stream->up : stream->down;
  const std::size_t size = std::min(room.size(), way.bytes.size() - way.taken);
  if (size == 0 && !way.is_ended) return NGHTTP2_ERR_DEFERRED;
  std::memcpy(room.data(), way.bytes.data() + way.taken, size);
  way.taken += size;
  const std::size_t read = std::min(size, way.unread);  // an answer of our own was never received
  way.unread -= read;
  if (read > 0) {
    ::nghttp2_session_consume(is_up ? program_.session : server_.session,
                              is_up ? stream->program_id : stream->server_id, read);
  }
  if (way.taken < way.bytes.size()) return static_cast<ssize_t>(size);
  way.bytes.clear();
  way.taken = 0;
  if (!way.is_ended) return static_cast<ssize_t>(size);
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (way.trailers.empty()) return static_cast<ssize_t>(size);
  *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  std::vector<nghttp2_nv> fields;
  for (const Field& field : way.trailers) fields.push_back(make_field(field));
  ::nghttp2_submit_trailer(side.session, id, fields.data(), fields.size());
  return static_cast<ssize_t>(size);
}

// --- The end
// ----------------------------------------------------------------------------------------------------------

int Http2Relay::on_close(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t error, void* user) {
  const Side& side = *static_cast<Side*>(user);
  side.relay->close_stream(side, id, error);
  return 0;
}

// Nobody takes these bytes any more, so the sender may send as many on its other streams.
void Http2Relay::drop_way(const Side& sender, std::int32_t id, Way& way) {
  if (way.unread > 0) ::nghttp2_session_consume(sender.session, id, way.unread);
  way = {.is_ended = way.is_ended};
}

void Http2Relay::close_stream(const Side& side, std::int32_t id, std::uint32_t error) {
  Stream* const stream = stream_of(side, id);
  if (stream == nullptr) return;
  if (&side == &program_) {
    stream->is_open_to_program = false;
    drop_way(server_, stream->server_id, stream->down);
    if (stream->is_open_to_server) {
      ::nghttp2_submit_rst_stream(server_.session, NGHTTP2_FLAG_NONE, stream->server_id, NGHTTP2_CANCEL);
    }
  } else {
    by_server_.erase(id);
    stream->is_open_to_server = false;
    drop_way(program_, stream->program_id, stream->up);
    const bool is_cut = error != NGHTTP2_NO_ERROR || !stream->down.is_ended;
    if (is_cut && stream->is_open_to_program) {
      const std::uint32_t told = error != NGHTTP2_NO_ERROR ? error : std::uint32_t{NGHTTP2_INTERNAL_ERROR};
      ::nghttp2_submit_rst_stream(program_.session, NGHTTP2_FLAG_NONE, stream->program_id, told);
    }
  }
  if (!stream->is_open_to_program && !stream->is_open_to_server) streams_.erase(stream->program_id);
}

}  // namespace belljar::egress
