#include "egress/flow.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace belljar::egress {
namespace {

constexpr std::size_t kIdlePipesMax = 32;
constexpr std::size_t kPipeBytes = std::size_t{1} << 20;
constexpr unsigned kTurnsMax = 16;

}  // namespace

Pipe PipePool::lend() {
  if (!idle_.empty()) {
    Pipe pipe = std::move(idle_.back());
    idle_.pop_back();
    return pipe;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {};
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(kPipeBytes));  // where it is refused, the usual size does too
  return pipe;
}

void PipePool::give_back(Pipe pipe) {
  if (idle_.size() < kIdlePipesMax) idle_.push_back(std::move(pipe));
}

bool Flow::fill(int source_fd, PipePool& pipes) {
  if (!pipe_.read.is_open()) pipe_ = pipes.lend();
  if (!pipe_.read.is_open()) {
    state_ = State::failed;
    return false;
  }
  const ssize_t count =
      ::splice(source_fd, nullptr, pipe_.write.get(), nullptr, kPipeBytes, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
  if (count > 0) {
    in_pipe_ = static_cast<std::size_t>(count);
    return true;
  }
  if (count == 0) {
    state_ = State::ended;
  } else if (errno == EAGAIN || errno == EINTR) {
    state_ = State::waits_for_source;
  } else {
    state_ = State::failed;
  }
  pipes.give_back(std::move(pipe_));
  pipe_ = {};
  return false;
}

bool Flow::empty(int target_fd, std::uint64_t* moved) {
  while (in_pipe_ > 0) {
    const ssize_t count =
        ::splice(pipe_.read.get(), nullptr, target_fd, nullptr, in_pipe_, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (count <= 0) {
      const bool is_full = count < 0 && (errno == EAGAIN || errno == EINTR);
      state_ = is_full ? State::waits_for_target : State::failed;
      return false;
    }
    in_pipe_ -= static_cast<std::size_t>(count);
    *moved += static_cast<std::uint64_t>(count);
  }
  return true;
}

std::uint64_t Flow::pump(int source_fd, int target_fd, PipePool& pipes) {
  std::uint64_t moved = 0;
  if (state_ == State::ended || state_ == State::failed) return moved;
  for (unsigned turn = 0; turn < kTurnsMax; ++turn) {
    if (!empty(target_fd, &moved) || !fill(source_fd, pipes)) return moved;
  }
  if (empty(target_fd, &moved)) state_ = State::waits_for_source;
  return moved;
}

}  // namespace belljar::egress
