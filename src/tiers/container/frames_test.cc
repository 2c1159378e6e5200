#include "tiers/container/frames.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace belljar::container {
namespace {

std::vector<std::byte> bytes_of(const Frame& frame) {
  std::vector<std::byte> bytes(sizeof frame);
  std::memcpy(bytes.data(), &frame, sizeof frame);
  return bytes;
}

Frame exited(int exit_code, int signal) {
  Frame frame{};
  frame.kind = FrameKind::exited;
  frame.exit_code = exit_code;
  frame.signal = signal;
  return frame;
}

TEST(Frame, TakesWhatInitSends) {
  EXPECT_EQ(read_frame(bytes_of(exited(3, -1)))->exit_code, 3);
  EXPECT_EQ(read_frame(bytes_of(exited(-1, 9)))->signal, 9);
  Frame failed{};
  failed.kind = FrameKind::setup_failed;
  failed.step = SetupStep::mount;
  failed.errno_value = ENOENT;
  EXPECT_EQ(read_frame(bytes_of(failed))->errno_value, ENOENT);
}

TEST(Frame, RefusesWrongSizes) {
  std::vector<std::byte> bytes = bytes_of(exited(0, -1));
  bytes.pop_back();
  EXPECT_FALSE(read_frame(bytes));
  bytes.resize(sizeof(Frame) + 1);
  EXPECT_FALSE(read_frame(bytes));
  EXPECT_FALSE(read_frame({}));
}

TEST(Frame, RefusesImpossibleEnds) {
  EXPECT_FALSE(read_frame(bytes_of(exited(256, -1))));
  EXPECT_FALSE(read_frame(bytes_of(exited(-1, -1))));
  EXPECT_FALSE(read_frame(bytes_of(exited(0, 9))));
  EXPECT_FALSE(read_frame(bytes_of(exited(-1, 65))));
  EXPECT_FALSE(read_frame(bytes_of(exited(-2, 9))));
}

TEST(Frame, RefusesUnknownKindsAndSteps) {
  Frame frame = exited(0, -1);
  frame.kind = static_cast<FrameKind>(99);
  EXPECT_FALSE(read_frame(bytes_of(frame)));
  frame.kind = FrameKind::setup_failed;
  frame.step = SetupStep::count;
  EXPECT_FALSE(read_frame(bytes_of(frame)));
  frame.step = SetupStep::mount;
  frame.detail = -1;
  EXPECT_FALSE(read_frame(bytes_of(frame)));
  frame.kind = FrameKind::exec_failed;
  frame.errno_value = 0;
  EXPECT_FALSE(read_frame(bytes_of(frame)));
}

}  // namespace
}  // namespace belljar::container
