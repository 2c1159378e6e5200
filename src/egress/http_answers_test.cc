#include "egress/http_answers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "egress/http_request.h"

namespace belljar::egress {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kValues = {"sk-12345678"};

struct Went {
  bool is_good = true;
  bool is_whole = false;
  std::string out;
};

Went filter(std::string_view bytes, std::size_t piece, std::vector<std::string_view> methods = {"GET"},
            bool may_switch = false) {
  AnswerFilter answers(kValues);
  for (const std::string_view method : methods) answers.expect(method, may_switch);
  Went went;
  for (std::size_t at = 0; at < bytes.size() && went.is_good; at += piece) {
    went.is_good = answers.feed(bytes.substr(at, piece), &went.out);
  }
  went.is_whole = went.is_good && answers.finish(&went.out);
  return went;
}

// The body of a chunked answer.
std::string joined(std::string_view answer) {
  std::string body;
  std::size_t at = answer.find("\r\n\r\n") + 4;
  while (true) {
    const std::size_t size = std::stoul(std::string(answer.substr(at, 16)), nullptr, 16);
    at = answer.find("\r\n", at) + 2;
    if (size == 0) return body;
    body += answer.substr(at, size);
    at += size + 2;
  }
}

TEST(AnswerFilter, MasksHeadsAndBodies) {
  constexpr std::string_view kAnswer =
      "HTTP/1.1 200 sk-12345678\r\nX-Echo: Bearer sk-12345678\r\nContent-Length: 15\r\n\r\na sk-12345678 b";
  for (std::size_t piece = 1; piece < kAnswer.size() + 1; ++piece) {
    const Went went = filter(kAnswer, piece);
    EXPECT_TRUE(went.is_whole);
    EXPECT_EQ(went.out,
              "HTTP/1.1 200 belljar-pla\r\nX-Echo: Bearer belljar-pla\r\nContent-Length: 15\r\n\r\na belljar-pla b");
  }
}

TEST(AnswerFilter, MasksAcrossChunks) {
  constexpr std::string_view kAnswer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na sk\r\n6;x=\"sk\"\r\n-12345\r\n5\r\n678 b\r\n0\r\n"
      "X-Trailer: sk-12345678\r\n\r\nHTTP/1.1 204 No\r\n\r\n";
  for (std::size_t piece = 1; piece < kAnswer.size() + 1; ++piece) {
    const Went went = filter(kAnswer, piece, {"GET", "GET"});
    ASSERT_TRUE(went.is_whole) << piece;
    EXPECT_EQ(joined(went.out), "a belljar-pla b");
    EXPECT_THAT(went.out, HasSubstr("X-Trailer: belljar-pla\r\n\r\nHTTP/1.1 204 No"));
    EXPECT_THAT(went.out, Not(HasSubstr("x=")));
  }
}

TEST(AnswerFilter, KnowsWhereAnswersEnd) {
  EXPECT_TRUE(filter("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.0 404 No\r\nContent-Length: 2\r\n\r\nno", 99,
                     {"HEAD", "GET"})
                  .is_whole);
  EXPECT_TRUE(filter("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 Same\r\nContent-Length: 5\r\n\r\n", 99).is_whole);
  EXPECT_TRUE(filter("HTTP/1.0 200 OK\r\n\r\nto the end sk-12345678", 3).is_whole);
  EXPECT_THAT(filter("HTTP/1.0 200 OK\r\n\r\nto the end sk-12345678", 3).out, HasSubstr("end belljar-pla"));
  EXPECT_THAT(filter("HTTP/1.0 200 OK\r\n\r\nto the end sk-1234", 3).out, HasSubstr("end sk-1234"));
  EXPECT_FALSE(filter("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", 99).is_whole);
  EXPECT_FALSE(filter("HTTP/1.1 200 OK\r\n", 99).is_whole);
  EXPECT_FALSE(filter("HTTP/1.1 204 No\r\n\r\n", 99, {"GET", "GET"}).is_whole);
}

TEST(AnswerFilter, RefusesWhatIsInDoubt) {
  for (const std::string_view head :
       {"HTTP/2 200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "ICY 200 OK",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2", "HTTP/1.1 200 OK\r\nContent-Length: -1",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1", "HTTP/1.1 200 OK\r\nA b: c",
        "HTTP/1.1 200 OK\nA: b", "HTTP/1.1 101 Switching", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc"}) {
    EXPECT_FALSE(filter(std::string(head) + "\r\n\r\n", 99).is_good) << head;
  }
  EXPECT_FALSE(filter("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 99).is_good);
}

TEST(AnswerFilter, PiecesMakeNoDifference) {
  const auto chunked = [](const std::string& rest) {
    return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + rest;
  };
  const std::string final_answer = "HTTP/1.1 204 No\r\n\r\n";
  const std::string last_chunk = "\r\na\r\n0\r\n\r\n";
  const std::vector<std::pair<std::string, bool>> answers = {
      {"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + final_answer, true},
      {"HTTP/1.1 100 Continue\r\nA: b\n\nB: c\r\n\r\n" + final_answer, false},
      {"HTTP/1.1 103 Early\r\nA b\r\n\r\n" + final_answer, false},
      {"HTTP/1.1 204 No\r\nA: b\n\nB: c\r\n\r\n", false},
      {chunked("1;" + std::string(4094, 'x') + last_chunk), true},
      {chunked("1;" + std::string(4095, 'x') + last_chunk), false},
      {chunked("0\r\nA: " + std::string(kHttpHeadBytesMax - 7, 'x') + "\r\n\r\n"), true},
      {chunked("0\r\nA: " + std::string(kHttpHeadBytesMax - 6, 'x') + "\r\n\r\n"), false},
  };
  for (const auto& [bytes, is_good] : answers) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
      EXPECT_EQ(filter(bytes, piece).is_whole, is_good) << bytes.substr(0, 80) << " by " << piece;
    }
  }
}

// What waits for more was a chunk's, so it goes on as one where the answer is cut short.
TEST(AnswerFilter, FramesWhatItKept) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const Went went = filter(head + "6\r\nan sk-", 99);
  EXPECT_FALSE(went.is_whole);
  EXPECT_EQ(went.out, head + "3\r\nan \r\n3\r\nsk-\r\n");
}

TEST(AnswerFilter, KeepsOnlyWhatMayBeAValue) {
  AnswerFilter answers(kValues);
  answers.expect("GET", false);
  std::string out;
  const auto comes = [&](const std::string& data) {
    out.clear();
    EXPECT_TRUE(answers.feed(fmt::format("{:x}\r\n{}\r\n", data.size(), data), &out));
    return out;
  };
  EXPECT_TRUE(answers.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &out));
  EXPECT_EQ(comes("data: one\n\n"), "b\r\ndata: one\n\n\r\n");
  EXPECT_EQ(comes("data: sk-1"), "6\r\ndata: \r\n");
  EXPECT_EQ(comes("x\n\n"), "7\r\nsk-1x\n\n\r\n");
  EXPECT_EQ(comes("sk-12345678"), "b\r\nbelljar-pla\r\n");
}

TEST(AnswerFilter, GoesOnWithAnotherProtocol) {
  const Went went =
      filter("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n\x81\x02hi sk-12345678 sk-", 99, {"GET"}, true);
  EXPECT_TRUE(went.is_whole);
  EXPECT_TRUE(went.out.ends_with("hi belljar-pla sk-"));
}

}  // namespace
}  // namespace belljar::egress
