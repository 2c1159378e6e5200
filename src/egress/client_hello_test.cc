#include "egress/client_hello.h"

#include <gtest/gtest.h>

namespace belljar::egress {
namespace {

using namespace std::string_literals;
using State = ClientHello::State;

std::string counted(std::size_t length_size, const std::string& bytes) {
  std::string out;
  for (std::size_t i = length_size; i > 0; --i) out += static_cast<char>(bytes.size() >> (8 * (i - 1)));
  out += bytes;
  return out;
}

std::string extension(int type, const std::string& value) {
  return std::string{static_cast<char>(type >> 8), static_cast<char>(type)} + counted(2, value);
}

std::string server_name(const std::string& name) {
  return extension(0, counted(2, std::string(1, '\0').append(counted(2, name))));
}

std::string message(const std::string& extensions) {
  const std::string body = "\x03\x03"s + std::string(32, 'r') + counted(1, std::string(32, 's')) +
                           counted(2, "\x13\x01"s) + counted(1, "\0"s) + counted(2, extensions);
  return std::string(1, '\x01').append(counted(3, body));
}

std::string records(const std::string& handshake, std::size_t fragment) {
  std::string out;
  for (std::size_t at = 0; at < handshake.size(); at += fragment) {
    out += "\x16\x03\x01"s + counted(2, handshake.substr(at, fragment));
  }
  return out;
}

TEST(ClientHello, FindsTheName) {
  const ClientHello hello = read_client_hello(records(message(extension(43, "x") + server_name("example.org")), 16384));
  EXPECT_EQ(hello.state, State::whole);
  EXPECT_EQ(hello.server_name, "example.org");
}

TEST(ClientHello, IsPutTogetherFromAnyPieces) {
  const std::string whole = message(server_name("example.org") + extension(0xfe0d, std::string(2000, 'e')));
  for (const std::size_t fragment : {std::size_t{1}, std::size_t{3}, std::size_t{500}}) {
    const std::string bytes = records(whole, fragment);
    EXPECT_EQ(read_client_hello(bytes).server_name, "example.org");
    for (std::size_t cut = 0; cut < bytes.size(); cut += fragment == 1 ? 97 : 1) {
      EXPECT_EQ(read_client_hello(bytes.substr(0, cut)).state, State::unfinished) << cut;
    }
  }
}

TEST(ClientHello, IsBoundedWhereverItIsCut) {
  const std::string long_one = message(server_name("example.org") + extension(0xfe0d, std::string(12000, 'e')));
  EXPECT_EQ(read_client_hello(records(long_one, 2)).state, State::whole);
  const std::string many = records(long_one, 1);
  EXPECT_EQ(read_client_hello(many).state, State::no_hello);
  EXPECT_EQ(read_client_hello(many.substr(0, 2 * kClientHelloBytesMax)).state, State::unfinished);
}

TEST(ClientHello, FindsTheProtocols) {
  const auto protocols = [](const std::string& list) {
    return read_client_hello(records(message(server_name("a.test") + extension(16, counted(2, list))), 16384));
  };
  EXPECT_EQ(protocols(counted(1, "h2") + counted(1, "http/1.1")).protocols,
            (std::vector<std::string>{"h2", "http/1.1"}));
  for (const std::string& list : {counted(1, ""), "\x05h2"s}) EXPECT_EQ(protocols(list).state, State::no_hello);
}

TEST(ClientHello, MayHaveNoName) {
  const ClientHello hello = read_client_hello(records(message(extension(43, "x")), 16384));
  EXPECT_EQ(hello.state, State::whole);
  EXPECT_EQ(hello.server_name, "");
}

TEST(ClientHello, IsRefusedWhenDamaged) {
  const auto state = [](const std::string& bytes) { return read_client_hello(bytes).state; };
  EXPECT_EQ(state("GET / HTTP/1.1\r\n\r\n"), State::no_hello);
  EXPECT_EQ(state("\x16\x02\x01\0\x01\x01"s), State::no_hello);
  EXPECT_EQ(state("\x16\x03\x01\0\0"s), State::no_hello);
  EXPECT_EQ(state("\x16\x03\x01\0\x01\x02"s), State::no_hello);
  EXPECT_EQ(state("\x16\x03\x01\0\x04\x01\xff\xff\xff"s), State::no_hello);
  EXPECT_EQ(state(records(message(server_name("a.test") + server_name("b.test")), 16384)), State::no_hello);
  EXPECT_EQ(state(records(message(extension(0, "")), 16384)), State::no_hello);
  const std::string two = counted(2, "\0"s + counted(2, "a.test"s) + "\0"s + counted(2, "b.test"s));
  EXPECT_EQ(state(records(message(extension(0, two)), 16384)), State::no_hello);
  std::string short_list = message(server_name("a.test"));
  short_list[short_list.size() - 9] = 50;
  EXPECT_EQ(state(records(short_list, 16384)), State::no_hello);
}

}  // namespace
}  // namespace belljar::egress
