#include "egress/http2_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

namespace belljar::egress {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kValues = {"sk-12345678"};
constexpr std::size_t kRoom = std::size_t{128} << 10;

nghttp2_nv nv(std::string_view name, std::string_view value) {
  return {const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(name.data())),
          const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

// What one peer of the relay has heard and has to say.
struct Heard {
  std::map<std::string, std::string> fields;
  std::string body;
  bool is_ended = false;
  std::uint32_t error = 0;
};

class Peer {
 public:
  enum class Role { program, server };

  explicit Peer(Role role) {
    nghttp2_session_callbacks* callbacks = nullptr;
    ::nghttp2_session_callbacks_new(&callbacks);
    ::nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    ::nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    ::nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    if (role == Role::program) ::nghttp2_session_client_new(&session_, callbacks, this);
    if (role == Role::server) ::nghttp2_session_server_new(&session_, callbacks, this);
    ::nghttp2_session_callbacks_del(callbacks);
    ::nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  ~Peer() { ::nghttp2_session_del(session_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::int32_t ask(std::vector<nghttp2_nv> more, std::string body = "",
                   std::string_view authority = "api.example.org") {
    std::vector<nghttp2_nv> fields = {nv(":method", body.empty() ? "GET" : "POST"), nv(":scheme", "https"),
                                      nv(":authority", authority), nv(":path", "/v1")};
    fields.insert(fields.end(), more.begin(), more.end());
    bodies_.push_back(std::move(body));
    const nghttp2_data_provider data{{.ptr = &bodies_.back()}, read_body};
    return ::nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                    bodies_.back().empty() ? nullptr : &data, nullptr);
  }

  void answer(std::int32_t id, std::vector<nghttp2_nv> fields, std::string body) {
    bodies_.push_back(std::move(body));
    const nghttp2_data_provider data{{.ptr = &bodies_.back()}, read_body};
    ::nghttp2_submit_response(session_, id, fields.data(), fields.size(), &data);
  }

  std::string says() {
    std::string out;
    const std::uint8_t* bytes = nullptr;
    for (ssize_t size = 0; (size = ::nghttp2_session_mem_send(session_, &bytes)) > 0;) {
      out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    }
    return out;
  }
  void hears(std::string_view bytes) {
    ::nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }

  std::map<std::int32_t, Heard> heard;
  std::string trailer;  // sent after each body
  std::string trailer_name = "x-trailer";
  nghttp2_session* session() { return session_; }

 private:
  static Heard& of(void* user, std::int32_t id) { return static_cast<Peer*>(user)->heard[id]; }
  static int on_header(nghttp2_session* /*s*/, const nghttp2_frame* frame, const std::uint8_t* name, size_t name_size,
                       const std::uint8_t* value, size_t value_size, std::uint8_t /*flags*/, void* user) {
    of(user, frame->hd.stream_id).fields[{reinterpret_cast<const char*>(name), name_size}] = {
        reinterpret_cast<const char*>(value), value_size};
    return 0;
  }
  static int on_data(nghttp2_session* /*s*/, std::uint8_t /*flags*/, std::int32_t id, const std::uint8_t* data,
                     size_t size, void* user) {
    of(user, id).body.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }
  static int on_frame(nghttp2_session* /*s*/, const nghttp2_frame* frame, void* user) {
    const bool is_end = frame->hd.type <= NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (is_end) of(user, frame->hd.stream_id).is_ended = true;
    return 0;
  }
  static int on_close(nghttp2_session* /*s*/, std::int32_t id, std::uint32_t error, void* user) {
    of(user, id).error = error;
    return 0;
  }
  static ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* room, size_t size,
                           std::uint32_t* flags, nghttp2_data_source* source, void* user) {
    auto* const body = static_cast<std::string*>(source->ptr);
    const std::size_t count = std::min(size, body->size());
    std::copy_n(body->begin(), count, room);
    body->erase(0, count);
    if (!body->empty()) return static_cast<ssize_t>(count);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    const Peer& peer = *static_cast<Peer*>(user);
    if (!peer.trailer.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const nghttp2_nv field = nv(peer.trailer_name, peer.trailer);
      ::nghttp2_submit_trailer(session, id, &field, 1);
    }
    return static_cast<ssize_t>(count);
  }

  nghttp2_session* session_ = nullptr;
  std::deque<std::string> bodies_;
};

class Http2RelayTest : public testing::Test {
 protected:
  Http2RelayTest() {
    relay = Http2Relay::create(kValues, [this](const Http2Request& request) {
      asked.push_back(std::string(request.authority) + std::string(request.path));
      if (request.authority != "api.example.org") return RequestVerdict{.refused_status = 403, .reason = "no"};
      return RequestVerdict{.headers = {{"authorization", "Bearer sk-12345678"}}};
    });
  }

  // Carries bytes until nobody has any.
  void carry() {
    for (int round = 0; round < 200; ++round) {
      std::string down;
      std::string up;
      ASSERT_TRUE(relay->from_program(program.says()));
      ASSERT_TRUE(relay->from_server(server.says()));
      ASSERT_TRUE(relay->to_program(&down, kRoom));
      ASSERT_TRUE(relay->to_server(&up, kRoom));
      program.hears(down);
      server.hears(up);
    }
  }

  Peer program{Peer::Role::program};
  Peer server{Peer::Role::server};
  std::unique_ptr<Http2Relay> relay;
  std::vector<std::string> asked;
};

TEST_F(Http2RelayTest, PutsTheSecretInAndMasksItsEcho) {
  const std::int32_t id = program.ask({nv("authorization", "Bearer own"), nv("x-other", "kept")}, "a body");
  carry();
  ASSERT_EQ(server.heard.size(), 1U);
  Heard& request = server.heard.begin()->second;
  EXPECT_EQ(request.fields["authorization"], "Bearer sk-12345678");
  EXPECT_EQ(request.fields["x-other"], "kept");
  EXPECT_EQ(request.body, "a body");
  EXPECT_TRUE(request.is_ended);
  server.trailer = "of sk-12345678";
  server.answer(server.heard.begin()->first, {nv(":status", "200"), nv("x-echo", "is sk-12345678")},
                "echo sk-12345678!");
  carry();
  Heard& answer = program.heard[id];
  EXPECT_EQ(answer.fields[":status"], "200");
  EXPECT_EQ(answer.fields["x-echo"], "is belljar-pla");
  EXPECT_EQ(answer.fields["x-trailer"], "of belljar-pla");
  EXPECT_EQ(answer.body, "echo belljar-pla!");
  EXPECT_TRUE(answer.is_ended);
}

TEST_F(Http2RelayTest, TakesNoTrailerOfTheSecretsName) {
  for (const char* name : {"authorization", "x-trailer"}) {
    program.trailer = "own";
    program.trailer_name = name;
    program.ask({}, "a body");
    carry();
  }
  ASSERT_EQ(server.heard.size(), 2U);
  for (auto& [id, request] : server.heard) {
    EXPECT_EQ(request.fields["authorization"], "Bearer sk-12345678");
    EXPECT_TRUE(request.is_ended);
  }
  EXPECT_EQ(server.heard.rbegin()->second.fields["x-trailer"], "own");
}

TEST_F(Http2RelayTest, CountsRequestsThatItResets) {
  program.ask({nv("connection", "close")});
  program.ask(std::vector<nghttp2_nv>(kHttpHeadersMax, nv("x-many", "x")));
  program.ask({});
  carry();
  EXPECT_EQ(server.heard.size(), 1U);
  const Http2Relay::Resets resets = relay->take_resets();
  EXPECT_EQ(resets.malformed, 1U);
  EXPECT_EQ(resets.too_long, 1U);
  EXPECT_EQ(relay->take_resets().malformed, 0U);
}

TEST_F(Http2RelayTest, RefusesWithAnAnswer) {
  const std::int32_t id = program.ask({}, std::string(300000, 'x'), "other.example.org");
  carry();
  EXPECT_TRUE(server.heard.empty());
  EXPECT_EQ(program.heard[id].fields[":status"], "403");
  EXPECT_EQ(program.heard[id].body, "belljar: no\n");
  const std::int32_t next = program.ask({});
  carry();
  EXPECT_EQ(server.heard.size(), 1U) << next;
}

TEST_F(Http2RelayTest, CarriesMoreThanItsWindows) {
  const std::string large(3 << 20, 'x');
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(program.ask({}, large));
  carry();
  ASSERT_EQ(server.heard.size(), 3U);
  for (const auto& [id, request] : std::map(server.heard)) {
    EXPECT_EQ(request.body.size(), large.size());
    server.answer(id, {nv(":status", "200")}, large);
  }
  carry();
  for (const std::int32_t id : ids) EXPECT_EQ(program.heard[id].body.size(), large.size());
}

TEST_F(Http2RelayTest, CarriesOnAfterStreamsThatWereGivenUp) {
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 8; ++i) {
    const std::int32_t id = program.ask({});
    carry();
    server.answer(server.heard.rbegin()->first, {nv(":status", "200")}, large);
    std::string up;
    ASSERT_TRUE(relay->from_server(server.says()));  // as much as the windows hold
    ::nghttp2_submit_rst_stream(program.session(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    carry();
  }
  const std::int32_t id = program.ask({});
  carry();
  server.answer(server.heard.rbegin()->first, {nv(":status", "200")}, large);
  carry();
  EXPECT_EQ(program.heard[id].body.size(), large.size());
}

TEST_F(Http2RelayTest, PassesOnThatTheServerGaveUp) {
  const std::int32_t id = program.ask({});
  carry();
  ::nghttp2_submit_rst_stream(server.session(), NGHTTP2_FLAG_NONE, server.heard.begin()->first, NGHTTP2_REFUSED_STREAM);
  carry();
  EXPECT_EQ(program.heard[id].error, static_cast<std::uint32_t>(NGHTTP2_REFUSED_STREAM));
}

TEST_F(Http2RelayTest, PassesInterimAnswersOn) {
  const std::int32_t id = program.ask({});
  carry();
  const nghttp2_nv interim[] = {nv(":status", "103"), nv("link", "</x>")};
  ::nghttp2_submit_headers(server.session(), NGHTTP2_FLAG_NONE, server.heard.begin()->first, nullptr, interim, 2,
                           nullptr);
  server.answer(server.heard.begin()->first, {nv(":status", "200")}, "done");
  carry();
  EXPECT_EQ(program.heard[id].fields["link"], "</x>");
  EXPECT_EQ(program.heard[id].fields[":status"], "200");
  EXPECT_EQ(program.heard[id].body, "done");
}

TEST_F(Http2RelayTest, EndsWithTheServer) {
  const std::int32_t id = program.ask({});
  carry();
  EXPECT_FALSE(relay->is_over());
  ::nghttp2_submit_goaway(server.session(), NGHTTP2_FLAG_NONE, server.heard.begin()->first, NGHTTP2_NO_ERROR, nullptr,
                          0);
  server.answer(server.heard.begin()->first, {nv(":status", "200")}, "last");
  carry();
  EXPECT_EQ(program.heard[id].body, "last");
  EXPECT_TRUE(relay->is_over());
}

TEST_F(Http2RelayTest, StopsAtWhatIsNoHttp2) {
  std::string out;
  EXPECT_FALSE(relay->from_program("GET / HTTP/1.1\r\nHost: api.example.org\r\n\r\n........"));
  EXPECT_EQ(relay->fault(), "HTTP/2 that breaks its rules, from the program");
}

TEST_F(Http2RelayTest, SaysThatItWasFlooded) {
  const auto make = [](std::uint8_t type, std::string_view payload, std::uint8_t stream) {
    std::string frame = {0, 0, static_cast<char>(payload.size()), static_cast<char>(type), 0, 0,
                         0, 0, static_cast<char>(stream)};
    return frame.append(payload);
  };
  std::string pings;
  for (int i = 0; i < 20000; ++i) pings += make(NGHTTP2_PING, "12345678", 0);
  carry();
  EXPECT_EQ(relay->fault(), "");
  EXPECT_FALSE(relay->from_server(pings));
  EXPECT_THAT(relay->fault(), HasSubstr("a flood of HTTP/2 frames"));
  EXPECT_THAT(relay->fault(), HasSubstr("from the server"));
}

TEST_F(Http2RelayTest, SaysThatTooManyStreamsWereReset) {
  constexpr int kFew = 100;
  constexpr int kMany = 3000;
  carry();
  for (int i = 0; i < kMany; ++i) {
    if (i == kFew) {
      EXPECT_EQ(relay->fault(), "");
    }
    const std::int32_t id = program.ask({});
    std::string bytes = program.says();
    ::nghttp2_submit_rst_stream(program.session(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    bytes += program.says();
    std::string down;
    std::string up;
    ASSERT_TRUE(relay->from_program(bytes));
    ASSERT_TRUE(relay->to_program(&down, kRoom));
    ASSERT_TRUE(relay->to_server(&up, kRoom));
    server.hears(up);
    if (relay->is_over()) break;
  }
  EXPECT_TRUE(relay->is_over());
  EXPECT_THAT(relay->fault(), HasSubstr("a flood of HTTP/2 frames"));
  EXPECT_THAT(relay->fault(), HasSubstr("from the program"));
}

}  // namespace
}  // namespace belljar::egress
