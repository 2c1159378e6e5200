#include <asm/termbits.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <string>
#include <thread>

#include "kernel/base/hosted.h"
#include "kernel/terminal/devices.h"
#include "kernel/terminal/terminal_files.h"

namespace belljar::kernel {
namespace {

struct Terminals : testing::Test {
  HostedKernel kernel;
  Ref<File> master;
  Ref<File> slave;

  void SetUp() override {
    Ref<Inode> folder = make_terminal_folder();
    master = *(*folder->lookup("ptmx"))->open({}, O_RDWR);
    master->set_flags(O_RDWR | O_NONBLOCK);
    EXPECT_EQ(value_of((*folder->lookup("0"))->open({}, O_RDWR | O_NOCTTY).error()), EIO);
    const int off = 0;
    EXPECT_TRUE(control(*master, TIOCSPTLCK, off));
    slave = *(*folder->lookup("0"))->open({}, O_RDWR | O_NOCTTY);
    slave->set_flags(O_RDWR | O_NONBLOCK);
  }
  void TearDown() override {
    slave = {};
    master = {};
  }

  template <typename T>
  static SysResult<std::uint64_t> control(File& file, std::uint32_t request, T& value) {
    return file.ioctl(request, reinterpret_cast<std::uint64_t>(&value));
  }
  static void write(File& file, std::string_view text) {
    const Area area{reinterpret_cast<std::uint64_t>(text.data()), text.size()};
    Buffers from = Buffers::of_guest({&area, 1});
    EXPECT_EQ(*file.write(from, nullptr), text.size());
  }
  static std::string read(File& file, std::size_t size = 4096) {
    std::string text(size, '\0');
    const Area area{reinterpret_cast<std::uint64_t>(text.data()), size};
    Buffers to = Buffers::of_guest({&area, 1});
    const auto count = file.read(to, nullptr);
    if (!count) return "errno " + std::to_string(value_of(count.error()));
    text.resize(*count);
    return text;
  }
  termios settings() {
    termios value{};
    EXPECT_TRUE(control(*slave, TCGETS, value));
    return value;
  }
  void set(const termios& value) {
    termios copy = value;
    EXPECT_TRUE(control(*slave, TCSETS, copy));
  }
};

TEST_F(Terminals, GivesWholeLinesAndEchoes) {
  write(*master, "hel");
  EXPECT_EQ(slave->ready() & POLLIN, 0U);
  EXPECT_EQ(read(*slave), "errno 11");
  write(*master, "lo\rmore\n");
  EXPECT_EQ(read(*master), "hello\r\nmore\r\n");
  EXPECT_NE(slave->ready() & POLLIN, 0U);
  EXPECT_EQ(read(*slave, 3), "hel");
  EXPECT_EQ(read(*slave), "lo\n");
  EXPECT_EQ(read(*slave), "more\n");
  EXPECT_EQ(read(*slave), "errno 11");
}

TEST_F(Terminals, EditsLines) {
  write(*master, "abx\177c\n");
  EXPECT_EQ(read(*master), "abx\b \bc\r\n");
  EXPECT_EQ(read(*slave), "abc\n");
  write(*master, "one two\027three\n");
  EXPECT_EQ(read(*slave), "one three\n");
  write(*master, "gone\025kept\026\003\n");
  EXPECT_EQ(read(*slave), "kept\003\n");
}

TEST_F(Terminals, EndOfFileEndsALineWithoutNewline) {
  write(*master, "part\004");
  EXPECT_EQ(read(*slave), "part");
  write(*master, "tab\tx\177\177\n");
  EXPECT_EQ(read(*master), "parttab\tx\b \b\b\r\n");
  EXPECT_EQ(read(*slave), "tab\n");
  write(*master, "\004");
  EXPECT_EQ(read(*slave), "");
  write(*master, "four\004next\n");
  // The mark goes with the characters before it.
  EXPECT_EQ(read(*slave, 4), "four");
  EXPECT_EQ(read(*slave), "next\n");
}

TEST_F(Terminals, RawIsRaw) {
  termios raw = settings();
  raw.c_lflag &= ~static_cast<std::uint32_t>(ICANON | ECHO | ISIG | IEXTEN);
  raw.c_iflag = 0;
  raw.c_oflag = 0;
  raw.c_cc[VMIN] = 1;
  set(raw);
  write(*master, "\003\004\r\177");
  EXPECT_EQ(read(*slave), "\003\004\r\177");
  EXPECT_EQ(read(*master), "errno 11");
  write(*slave, "a\nb");
  EXPECT_EQ(read(*master), "a\nb");
  raw.c_cc[VMIN] = 0;
  set(raw);
  slave->set_flags(O_RDWR);
  EXPECT_EQ(read(*slave), "");
}

TEST_F(Terminals, KeepsItsSize) {
  winsize size{24, 80, 0, 0};
  EXPECT_TRUE(control(*master, TIOCSWINSZ, size));
  winsize told{};
  EXPECT_TRUE(control(*slave, TIOCGWINSZ, told));
  EXPECT_EQ(told.ws_row, 24);
  EXPECT_EQ(told.ws_col, 80);
  unsigned number = 99;
  EXPECT_TRUE(control(*master, TIOCGPTN, number));
  EXPECT_EQ(number, 0U);
}

TEST_F(Terminals, EndsAreSeen) {
  write(*slave, "last");
  slave = {};
  EXPECT_EQ(read(*master), "last");
  EXPECT_EQ(read(*master), "errno 5");
  EXPECT_NE(master->ready() & POLLHUP, 0U);
  slave = *(*make_terminal_folder()->lookup("0"))->open({}, O_RDWR | O_NOCTTY);
  slave->set_flags(O_RDWR);
  EXPECT_EQ(read(*master), "errno 11");
  master = {};
  EXPECT_EQ(read(*slave), "");
  EXPECT_NE(slave->ready() & POLLHUP, 0U);
  EXPECT_EQ(value_of(make_terminal_folder()->lookup("0").error()), ENOENT);
}

TEST_F(Terminals, ThreadsTalk) {
  master->set_flags(O_RDWR);
  slave->set_flags(O_RDWR);
  constexpr std::size_t kLines = 5000;
  std::thread reader([&] {
    HostedThread thread(kernel);
    std::size_t lines = 0;
    while (lines < kLines) {
      EXPECT_EQ(read(*slave), "some line\n");
      ++lines;
    }
  });
  for (std::size_t i = 0; i < kLines; ++i) write(*master, "some line\n");
  reader.join();
}

}  // namespace
}  // namespace belljar::kernel
