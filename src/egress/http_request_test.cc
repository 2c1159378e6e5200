#include "egress/http_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace belljar::egress {
namespace {

using namespace std::string_literals;
using Kind = RequestReader::Kind;

struct Seen {
  int heads = 0;
  int whole = 0;
  std::string body;  // with the framing of chunks
  std::string reason;
};

// Feeds the bytes in pieces of `step`.
Seen read(const std::string& bytes, std::size_t step = 1 << 20) {
  RequestReader reader;
  Seen seen;
  std::string input;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    input += bytes.substr(at, step);
    while (true) {
      const RequestReader::Event event = reader.next(input);
      if (event.kind == Kind::more) break;
      if (event.kind == Kind::broken) {
        seen.reason = event.reason;
        return seen;
      }
      if (event.kind == Kind::head) ++seen.heads;
      if (event.kind == Kind::body) seen.body += input.substr(0, event.size);
      if (event.ends_request) ++seen.whole;
      input.erase(0, event.size);
    }
  }
  return seen;
}

TEST(HttpRequest, ReadsHeads) {
  RequestReader reader;
  const std::string text = "GET /a?b HTTP/1.1\r\nHost: example.org\r\nX-A:  b c \r\n\r\nrest";
  const auto event = reader.next(text);
  ASSERT_EQ(event.kind, Kind::head);
  EXPECT_EQ(event.head.method, "GET");
  EXPECT_EQ(event.head.target, "/a?b");
  EXPECT_EQ(event.head.header("host"), "example.org");
  EXPECT_EQ(event.head.header("x-a"), "b c");
  EXPECT_FALSE(event.head.header("cookie"));
  EXPECT_TRUE(event.ends_request);
  EXPECT_EQ(text.substr(event.size), "rest");
}

TEST(HttpRequest, KnowsWhereRequestsEnd) {
  const std::string requests =
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
      "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
      "POST /y HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0a\r\n0123456789\r\n0\r\nX: "
      "y\r\n\r\n"
      "GET /z HTTP/1.0\r\n\r\n";
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
    const Seen seen = read(requests, step);
    EXPECT_EQ(seen.reason, "");
    EXPECT_EQ(seen.heads, 4);
    EXPECT_EQ(seen.whole, 4);
    EXPECT_EQ(seen.body, "hello4\r\nabcd\r\n0a\r\n0123456789\r\n0\r\nX: y\r\n\r\n");
  }
}

TEST(HttpRequest, RefusesWhatServersReadInDifferentWays) {
  const std::string host = "Host: a\r\n";
  const std::string end = "\r\n";
  for (const std::string& request :
       {"GET / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 1\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "Content-Length: 1, 1\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "Content-Length: +1\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "Content-Length: 0x1\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "Content-Length:\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n" + end,
        "GET / HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "Transfer-Encoding : chunked\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + " Transfer-Encoding: chunked\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "X: a\r\n folded\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + host + end,
        "GET / HTTP/1.1\r\n" + host + "X: a\nY: b\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "X: a\rb\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + "X: a\0b\r\n"s + end,
        "GET / HTTP/1.1\n" + host + "\n\n",
        "GET / HTTP/1.1\r\n" + host + "X\r\n" + end,
        "GET / HTTP/1.1\r\n" + host + ": x\r\n" + end,
        "GET /a b HTTP/1.1\r\n" + host + end,
        "GET  / HTTP/1.1\r\n" + host + end,
        "GET / HTTP/1.2\r\n" + host + end,
        "GET / HTTP/2.0\r\n" + host + end,
        "GET / http/1.1\r\n" + host + end,
        "GET /\r\n" + host + end,
        "G@T / HTTP/1.1\r\n" + host + end,
        "GET /#x HTTP/1.1\r\n" + host + end,
        " GET / HTTP/1.1\r\n" + host + end,
        "\r\nGET / HTTP/1.1\r\n" + host + end}) {
    const Seen seen = read(request);
    EXPECT_NE(seen.reason, "") << request;
    EXPECT_EQ(seen.heads, 0) << request;
  }
}

TEST(HttpRequest, RefusesDoubtfulChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& body :
       {"4;x=y\r\nabcd\r\n0\r\n\r\n"s, " 4\r\nabcd\r\n"s, "0x4\r\nabcd\r\n"s, "-4\r\n"s, "\r\n"s,
        "4\nabcd\r\n0\r\n\r\n"s, "4\r\nabcdX\r\n"s, "ffffffffffffffff\r\n"s, "10000000000000000000\r\n"s,
        "0\r\nContent-Length: 3\r\n\r\n"s, "0\r\nbad trailer\r\n\r\n"s}) {
    EXPECT_NE(read(head + body).reason, "") << body;
  }
}

TEST(HttpRequest, BoundsChunkSizesWhereverTheyAreCut) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
    EXPECT_EQ(read(head + std::string(17, '0') + "1\r\na\r\n0\r\n\r\n", step).reason, "");
    EXPECT_NE(read(head + std::string(18, '0') + "1\r\na\r\n0\r\n\r\n", step).reason, "");
  }
}

TEST(HttpRequest, BoundsHeads) {
  EXPECT_NE(read("GET / HTTP/1.1\r\nX: " + std::string(kHttpHeadBytesMax, 'x')).reason, "");
  std::string many = "GET / HTTP/1.1\r\n";
  for (std::size_t i = 0; i <= kHttpHeadersMax; ++i) many += "X: y\r\n";
  EXPECT_NE(read(many + "\r\n").reason, "");
}

TEST(HttpGuess, TellsHttpFromTheRest) {
  EXPECT_EQ(guess_http("G"), HttpGuess::maybe);
  EXPECT_EQ(guess_http("GET / HT"), HttpGuess::maybe);
  EXPECT_EQ(guess_http("GET / HTTP/1.1\r\n"), HttpGuess::yes);
  EXPECT_EQ(guess_http("GET /\r\n"), HttpGuess::no);
  EXPECT_EQ(guess_http("\r\n"), HttpGuess::maybe);
  EXPECT_EQ(guess_http("\r\nGET / HTTP/1.1\r\n"), HttpGuess::disguised);
  EXPECT_EQ(guess_http("get / HTTP/1.1\r\n"), HttpGuess::disguised);
  EXPECT_EQ(guess_http("GET1 / HTTP/1.1\r\n"), HttpGuess::disguised);
  EXPECT_EQ(guess_http("GET\t/ HTTP/1.1\r\n"), HttpGuess::disguised);
  EXPECT_EQ(guess_http("GET / http/1.1\r\n"), HttpGuess::disguised);
  EXPECT_EQ(guess_http("get key\r\n"), HttpGuess::no);
  EXPECT_EQ(guess_http("ge"), HttpGuess::maybe);
  EXPECT_EQ(guess_http("hello"), HttpGuess::no);
  EXPECT_EQ(guess_http("1 2"), HttpGuess::no);
  EXPECT_EQ(guess_http(std::string_view("0032git-upload-pack /x\0host=y", 29)), HttpGuess::no);
  EXPECT_EQ(guess_http("SSH-2.0-OpenSSH_9.2p1\r\n"), HttpGuess::no);
  EXPECT_EQ(guess_http("EHLO me\r\n"), HttpGuess::no);
  EXPECT_EQ(guess_http("PING\r\n"), HttpGuess::no);
  EXPECT_EQ(guess_http("\x16\x03\x01"), HttpGuess::no);
  EXPECT_EQ(guess_http(std::string_view("\0\0\0\x08", 4)), HttpGuess::no);
  EXPECT_EQ(guess_http("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), HttpGuess::version_2);
}

}  // namespace
}  // namespace belljar::egress
