#include "kernel/ipc/pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <string>
#include <thread>
#include <vector>

#include "kernel/base/hosted.h"
#include "kernel/ipc/poll.h"

namespace belljar::kernel {
namespace {

SysResult<std::uint64_t> write_text(File& file, std::string_view text) {
  const Area area{reinterpret_cast<std::uint64_t>(text.data()), text.size()};
  Buffers from = Buffers::of_guest({&area, 1});
  return file.write(from, nullptr);
}

SysResult<std::uint64_t> read_bytes(File& file, char* to, std::size_t size) {
  const Area area{reinterpret_cast<std::uint64_t>(to), size};
  Buffers buffers = Buffers::of_guest({&area, 1});
  return file.read(buffers, nullptr);
}

std::string read_text(File& file, std::size_t size) {
  std::string text(size, '\0');
  const auto count = read_bytes(file, text.data(), size);
  if (!count) return "errno " + std::to_string(value_of(count.error()));
  text.resize(*count);
  return text;
}

int errno_of(const SysResult<std::uint64_t>& result) {
  return result ? 0 : value_of(result.error());
}

TEST(Pipe, KeepsOrderAndAnswersTheEnd) {
  HostedKernel kernel;
  PipePair pair = *make_pipe(O_NONBLOCK);
  EXPECT_EQ(read_text(*pair.reader, 10), "errno 11");
  EXPECT_EQ(*write_text(*pair.writer, "hello "), 6U);
  EXPECT_EQ(*write_text(*pair.writer, "world"), 5U);
  int waiting = 0;
  ASSERT_TRUE(pair.reader->ioctl(FIONREAD, reinterpret_cast<std::uint64_t>(&waiting)));
  EXPECT_EQ(waiting, 11);
  EXPECT_EQ(read_text(*pair.reader, 3), "hel");
  EXPECT_EQ(read_text(*pair.reader, 100), "lo world");
  pair.writer = {};
  EXPECT_EQ(read_text(*pair.reader, 10), "");
}

TEST(Pipe, HoldsExactlyItsCapacityInSmallWrites) {
  HostedKernel kernel;
  PipePair pair = *make_pipe(O_NONBLOCK);
  std::uint64_t count = 0;
  while (write_text(*pair.writer, "x")) ++count;
  EXPECT_EQ(count, 65536U);
  EXPECT_EQ(pair.writer->ready(), 0U);
  // Room for a page is needed before it is writable again.
  EXPECT_EQ(read_text(*pair.reader, 4095).size(), 4095U);
  EXPECT_EQ(pair.writer->ready(), 0U);
  EXPECT_EQ(read_text(*pair.reader, 1).size(), 1U);
  EXPECT_EQ(pair.writer->ready(), static_cast<Events>(POLLOUT | POLLWRNORM));
}

TEST(Pipe, WritesUpToPipeBufAllOrNothing) {
  HostedKernel kernel;
  PipePair pair = *make_pipe(O_NONBLOCK);
  EXPECT_EQ(*write_text(*pair.writer, std::string(65536 - 100, 'a')), 65436U);
  EXPECT_EQ(errno_of(write_text(*pair.writer, std::string(4096, 'b'))), EAGAIN);
  EXPECT_EQ(*write_text(*pair.writer, std::string(100, 'c')), 100U);
  EXPECT_EQ(errno_of(write_text(*pair.writer, std::string(5000, 'd'))), EAGAIN);
  read_text(*pair.reader, 8192);
  EXPECT_EQ(*write_text(*pair.writer, std::string(20000, 'd')), 8192U);
}

TEST(Pipe, IsBrokenWithoutReader) {
  HostedKernel kernel;
  PipePair pair = *make_pipe(0);
  EXPECT_EQ(pair.writer->ready() & POLLERR, 0U);
  pair.reader = {};
  EXPECT_EQ(errno_of(write_text(*pair.writer, "x")), EPIPE);
  EXPECT_NE(pair.writer->ready() & POLLERR, 0U);
}

TEST(Pipe, KeepsPacketsApart) {
  HostedKernel kernel;
  PipePair pair = *make_pipe(O_NONBLOCK | O_DIRECT);
  EXPECT_EQ(*write_text(*pair.writer, "first"), 5U);
  EXPECT_EQ(*write_text(*pair.writer, "second"), 6U);
  EXPECT_EQ(read_text(*pair.reader, 3), "fir");
  EXPECT_EQ(read_text(*pair.reader, 100), "second");
}

TEST(Pipe, ChangesItsCapacity) {
  HostedKernel kernel;
  PipePair pair = *make_pipe(O_NONBLOCK);
  Pipe& pipe = *pipe_of(*pair.reader);
  EXPECT_EQ(pipe.capacity(), 65536U);
  EXPECT_EQ(*write_text(*pair.writer, std::string(10000, 'a')), 10000U);
  EXPECT_EQ(value_of(pipe.set_capacity(4096).error()), EBUSY);
  EXPECT_EQ(*pipe.set_capacity(100'000), 131072U);
  EXPECT_EQ(value_of(pipe.set_capacity(2U << 20).error()), EPERM);
  EXPECT_EQ(read_text(*pair.reader, 20000), std::string(10000, 'a'));
}

TEST(Pipe, FaultMovesNothing) {
  HostedKernel kernel;
  PipePair pair = *make_pipe(O_NONBLOCK);
  const Area nowhere{8, 10};
  Buffers from = Buffers::of_guest({&nowhere, 1});
  EXPECT_EQ(errno_of(pair.writer->write(from, nullptr)), EFAULT);
  EXPECT_EQ(*write_text(*pair.writer, "kept"), 4U);
  Buffers to = Buffers::of_guest({&nowhere, 1});
  EXPECT_EQ(errno_of(pair.reader->read(to, nullptr)), EFAULT);
  EXPECT_EQ(read_text(*pair.reader, 10), "kept");
}

TEST(Pipe, BlocksBothSidesUntilTheOtherMoves) {
  HostedKernel kernel;
  PipePair pair = *make_pipe(0);
  constexpr std::size_t kTotal = 3'000'000;
  std::thread writer([&] {
    HostedThread thread(kernel);
    std::string text(kTotal, '\0');
    for (std::size_t i = 0; i < kTotal; ++i) text[i] = static_cast<char>(i * 7);
    EXPECT_EQ(*write_text(*pair.writer, text), kTotal);
    pair.writer = {};
  });
  std::size_t done = 0;
  std::vector<char> buffer(10'000);
  while (true) {
    const auto count = read_bytes(*pair.reader, buffer.data(), buffer.size());
    ASSERT_TRUE(count);
    if (*count == 0) break;
    for (std::size_t i = 0; i < *count; ++i) ASSERT_EQ(buffer[i], static_cast<char>((done + i) * 7));
    done += *count;
  }
  EXPECT_EQ(done, kTotal);
  writer.join();
}

TEST(Pipe, SmallWritesOfManyThreadsStayWhole) {
  HostedKernel kernel;
  PipePair pair = *make_pipe(0);
  constexpr std::size_t kSize = 4096;
  constexpr int kRounds = 200;
  std::vector<std::thread> writers;
  for (char name : {'a', 'b', 'c'}) {
    writers.emplace_back([&, name] {
      HostedThread thread(kernel);
      for (int i = 0; i < kRounds; ++i) EXPECT_EQ(*write_text(*pair.writer, std::string(kSize, name)), kSize);
    });
  }
  std::string text(kSize, '\0');
  for (int i = 0; i < 3 * kRounds; ++i) {
    std::size_t done = 0;
    while (done < kSize) done += *read_bytes(*pair.reader, text.data() + done, kSize - done);
    EXPECT_EQ(text, std::string(kSize, text[0]));
  }
  for (std::thread& writer : writers) writer.join();
}

TEST(Poll, SaysWhatIsReadyAndWaits) {
  HostedKernel kernel;
  PipePair pair = *make_pipe(0);
  PolledFile files[2];
  files[0] = {.file = pair.reader, .wanted = POLLIN | POLLERR | POLLHUP};
  files[1].ready = POLLNVAL;
  EXPECT_EQ(*poll_files(files, 2, 0), 1U);
  files[1].ready = 0;
  EXPECT_EQ(*poll_files(files, 2, 0), 0U);
  EXPECT_EQ(*poll_files(files, 1, deadline_after(1'000'000)), 0U);
  std::thread writer([&] {
    HostedThread thread(kernel);
    EXPECT_EQ(*write_text(*pair.writer, "x"), 1U);
  });
  EXPECT_EQ(*poll_files(files, 1, kNever), 1U);
  EXPECT_EQ(files[0].ready, static_cast<Events>(POLLIN));
  writer.join();
  pair.writer = {};
  EXPECT_EQ(*poll_files(files, 1, kNever), 1U);
  EXPECT_EQ(files[0].ready, static_cast<Events>(POLLIN | POLLHUP));
}

}  // namespace
}  // namespace belljar::kernel
