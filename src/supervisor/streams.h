// The program's streams between its pipes and the caller: counted, cut at the limit, never blocking the supervisor.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/utf8.h"
#include "belljar/belljar.h"
#include "spec/outcome.h"

namespace belljar {

// One of stdout and stderr. Reads all that comes, keeps at most `limit` bytes (cut before a UTF-8 character that would
// not fit), and passes what it keeps on to `sink_fd`.
class OutputStream {
 public:
  OutputStream(int source_fd, int sink_fd, RunIo::Form form, bool capture, std::uint64_t limit);

  // What to wait for; descriptors are negative where there is nothing to wait for.
  pollfd source_poll() const;
  pollfd sink_poll() const;

  // Reads what is there. Call when source_poll() reports anything.
  void read_available();

  // Writes a part of what is pending, without blocking. Call when sink_poll() reports anything.
  void write_pending();

  int source_fd() const { return source_fd_; }
  bool at_end() const { return at_end_; }
  bool has_pending() const { return !pending_.empty(); }
  bool sink_is_gone() const { return sink_errno_ != 0; }
  int sink_errno() const { return sink_errno_; }  // why the sink takes no more; 0: it does
  bool over_limit() const { return stream_.truncated; }

  // The captured stream; call once, at the end.
  CapturedStream take();

 private:
  void keep(std::string_view chunk);
  void pass_on(std::string_view bytes);
  void end();

  int source_fd_;
  int sink_fd_;
  RunIo::Form form_;
  bool capture_;
  std::uint64_t limit_;
  std::uint64_t kept_ = 0;
  bool at_end_ = false;
  int sink_errno_ = 0;
  std::string unfinished_;  // the beginning of a character, held until the rest shows that it fits
  std::string pending_;
  TerminalNeutraliser neutraliser_;
  CapturedStream stream_;
};

// The caller's stdin, copied into the program's pipe.
class InputStream {
 public:
  // Takes the pipe's write end out of `sink` when the input is over. source_fd -1: at once.
  InputStream(int source_fd, Fd* sink);

  pollfd source_poll() const;
  pollfd sink_poll() const;
  void read_available();
  // Call when sink_poll() reports anything: room, or that the program has closed its end.
  void write_pending();

 private:
  void close_sink();

  int source_fd_;
  Fd* sink_;
  std::string pending_;
};

}  // namespace belljar
