#include "supervisor/streams.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace belljar {
namespace {

// Feeds `chunks` through an OutputStream and returns what it captured.
CapturedStream capture(const std::vector<std::string>& chunks, std::uint64_t limit) {
  Pipe pipe = *make_pipe();
  OutputStream stream(pipe.read.get(), -1, RunIo::Form::raw, true, limit);
  for (const std::string& chunk : chunks) {
    EXPECT_TRUE(write_all(pipe.write.get(), chunk));
    stream.read_available();
  }
  pipe.write.reset();
  while (!stream.at_end()) stream.read_available();
  return stream.take();
}

TEST(OutputStream, KeepsAllBelowTheLimit) {
  const CapturedStream stream = capture({"a", "bc"}, 3);
  EXPECT_EQ(stream.bytes, "abc");
  EXPECT_FALSE(stream.truncated);
}

TEST(OutputStream, CountsPastTheLimit) {
  const CapturedStream stream = capture({"abcd", "efgh"}, 3);
  EXPECT_EQ(stream.bytes, "abc");
  EXPECT_TRUE(stream.truncated);
  EXPECT_EQ(stream.bytes_total, 8U);
}

TEST(OutputStream, DoesNotCutACharacter) {
  EXPECT_EQ(capture({"\u20ac\u20ac"}, 4).bytes, "\u20ac");
  EXPECT_EQ(capture({"\u20ac\xe2", "\x82\xac"}, 4).bytes, "\u20ac");  // the second one begins in another chunk
}

TEST(OutputStream, KeepsBytesThatAreNoText) {
  const std::string binary("\xff\xfe\x00\xe2", 4);
  EXPECT_EQ(capture({binary}, 100).bytes, binary);
}

TEST(OutputStream, AZeroLimitKeepsNothing) {
  const CapturedStream stream = capture({"x"}, 0);
  EXPECT_EQ(stream.bytes, "");
  EXPECT_TRUE(stream.truncated);
}

TEST(OutputStream, NoticesThatItsReaderWentAway) {
  const sighandler_t before = ::signal(SIGPIPE, SIG_IGN);
  Pipe source = *make_pipe();
  Pipe sink = *make_pipe();
  OutputStream stream(source.read.get(), sink.write.get(), RunIo::Form::raw, false, 100);
  ASSERT_TRUE(write_all(source.write.get(), "x"));
  stream.read_available();
  sink.read.reset();
  stream.write_pending();
  EXPECT_TRUE(stream.sink_is_gone());
  EXPECT_EQ(stream.sink_errno(), EPIPE);
  ::signal(SIGPIPE, before);
}

TEST(InputStream, ClosesThePipeAtTheEndOfItsSource) {
  Pipe source = *make_pipe();
  Pipe sink = *make_pipe();
  InputStream stream(source.read.get(), &sink.write);
  ASSERT_TRUE(write_all(source.write.get(), "in"));
  source.write.reset();
  stream.read_available();
  stream.write_pending();
  stream.read_available();
  EXPECT_FALSE(sink.write.is_open());
  EXPECT_EQ(*read_all(sink.read.get(), 10), "in");
}

TEST(InputStream, EndsWhenTheProgramClosesItsEndWhileNothingComes) {
  Pipe source = *make_pipe();
  Pipe sink = *make_pipe();
  InputStream stream(source.read.get(), &sink.write);
  sink.read.reset();
  pollfd wanted = stream.sink_poll();
  ASSERT_EQ(::poll(&wanted, 1, 0), 1);
  stream.write_pending();
  EXPECT_FALSE(sink.write.is_open());
  EXPECT_LT(stream.sink_poll().fd, 0);
  EXPECT_LT(stream.source_poll().fd, 0);
}

TEST(InputStream, WithoutASourceIsEmpty) {
  Pipe sink = *make_pipe();
  const InputStream stream(-1, &sink.write);
  EXPECT_FALSE(sink.write.is_open());
}

}  // namespace
}  // namespace belljar
