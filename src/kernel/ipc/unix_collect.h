// Sockets that are sent over sockets may end up held by messages only, each in the queue of another such one: nobody
// can ever receive them. As Linux does, they are looked for when a socket is closed while files are under way.
#pragma once

#include "kernel/arena/lock.h"
#include "kernel/ipc/unix_message.h"

namespace belljar::kernel {

class UnixSocketState;

class UnixCollection {
 public:
  // Held while files enter or leave a queue. LockRank::rights.
  static Lock& lock();
  // ETOOMANYREFS where there are too many under way already.
  static SysResult<void> check_count(std::uint32_t count);
  // With the lock held: `files` entered the queue of `holder`, or left it.
  static void note(PassedFiles& files, UnixSocket& holder);
  static void unnote(PassedFiles& files);
  // unnote() for one that is thrown away; takes the lock, if there is a need.
  static void forget(PassedFiles& files);

  // Frees messages of a socket that was closed. Files in them may be sockets with messages in turn: all are freed by
  // one thread, one after the other, so that long chains need no deep stack. No lock may be held.
  static void throw_away(MessageList messages);

  // Closes what can't be reached. No lock may be held.
  static void run();

 private:
  static void count_references(UnixSocketState& state);
  static void mark_reachable(UnixSocketState& state);
  static bool is_reachable(const UnixSocket& socket);
  static MessageList take_garbage(UnixSocketState& state);
  template <typename Visit>
  static void for_each_socket(PassedFiles& files, Visit visit);
};

}  // namespace belljar::kernel
