// Bytes from one socket to another without a way through this process: splice(2) by a pipe, which is lent for as long
// as bytes are in it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"

namespace belljar::egress {

class PipePool {
 public:
  // An empty pipe that never blocks; closed ends where the kernel has none left.
  Pipe lend();
  void give_back(Pipe pipe);

 private:
  std::vector<Pipe> idle_;
};

class Flow {
 public:
  enum class State { waits_for_source, waits_for_target, ended, failed };

  // Moves what there is, up to a share that leaves other connections their turn. Returns the bytes that arrived.
  std::uint64_t pump(int source_fd, int target_fd, PipePool& pipes);

  State state() const { return state_; }
  bool is_ended() const { return state_ == State::ended; }

  // Gives the pipe up; what is in it is lost.
  void drop() { pipe_ = {}; }

 private:
  bool fill(int source_fd, PipePool& pipes);
  bool empty(int target_fd, std::uint64_t* moved);

  Pipe pipe_;
  std::size_t in_pipe_ = 0;
  State state_ = State::waits_for_source;
};

}  // namespace belljar::egress
