#include "egress/tls.h"

#include <gtest/gtest.h>

namespace belljar::egress {
namespace {

const Host kHost{"api.example.org", std::nullopt};

std::unique_ptr<Tls> make(std::string trusted) {
  auto tls = Tls::create(std::move(trusted));
  EXPECT_TRUE(tls);
  return tls ? std::move(*tls) : nullptr;
}

// Carries bytes between both until nothing comes any more.
void greet(TlsEnd& client, TlsEnd& server) {
  for (int i = 0; i < 10; ++i) {
    client.greet();
    server.feed(std::exchange(client.wire(), {}));
    server.greet();
    client.feed(std::exchange(server.wire(), {}));
  }
}

TEST(Tls, SpeaksWithWhoTrustsItsAuthority) {
  const auto inside = make("");
  const auto outside = make(inside->authority_pem());
  auto server = inside->to_program(kHost, kHttp2Protocol);
  auto client = outside->to_server(kHost, {kHttp2Protocol, kHttp1Protocol});
  ASSERT_TRUE(server && client);
  greet(*client, *server);
  ASSERT_EQ(client->state(), TlsEnd::State::open) << client->fault();
  ASSERT_EQ(server->state(), TlsEnd::State::open) << server->fault();
  EXPECT_EQ(client->protocol(), "h2");
  std::string plain = "a question";
  ASSERT_TRUE(client->write(&plain));
  EXPECT_EQ(plain, "");
  EXPECT_EQ(client->wire().find("question"), std::string::npos);
  server->feed(client->wire());
  ASSERT_TRUE(server->read(&plain));
  EXPECT_EQ(plain, "a question");
  EXPECT_FALSE(server->is_ended());
  client->wire().clear();
  client->say_end();
  server->feed(client->wire());
  EXPECT_TRUE(server->read(&plain));
  EXPECT_TRUE(server->is_ended());
}

TEST(Tls, ServesAddressesToo) {
  const Host address{"203.0.113.7", parse_ip("203.0.113.7")};
  const auto inside = make("");
  const auto outside = make(inside->authority_pem());
  auto server = inside->to_program(address, "");
  auto client = outside->to_server(address, {});
  ASSERT_TRUE(server && client);
  greet(*client, *server);
  EXPECT_EQ(client->state(), TlsEnd::State::open) << client->fault();
}

TEST(Tls, TrustsNobodyElse) {
  const auto inside = make("");
  for (const std::string& trusted : {std::string(), make("")->authority_pem()}) {
    const auto outside = make(trusted);
    auto server = inside->to_program(kHost, "");
    auto client = outside->to_server(kHost, {});
    greet(*client, *server);
    EXPECT_EQ(client->state(), TlsEnd::State::failed);
    EXPECT_FALSE(client->fault().empty());
  }
}

TEST(Tls, ChecksTheName) {
  const auto inside = make("");
  const auto outside = make(inside->authority_pem());
  auto server = inside->to_program(Host{"www.example.org", std::nullopt}, "");
  auto client = outside->to_server(kHost, {});
  greet(*client, *server);
  EXPECT_EQ(client->state(), TlsEnd::State::failed);
  EXPECT_EQ(client->fault(), "hostname mismatch");
}

TEST(Tls, FailsOnWhatIsNoTls) {
  const auto tls = make("");
  auto server = tls->to_program(kHost, "");
  server->feed("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(server->greet(), TlsEnd::State::failed);
}

}  // namespace
}  // namespace belljar::egress
