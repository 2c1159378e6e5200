// Sockets of unix(7). A UnixSocket is what connects and queues; a SocketFile (socket_file.h) is what descriptors refer
// to, and closes the socket when it goes. Both sides of a connection refer to each other until one is closed.
//
// Locks: one socket's own at a time (LockRank::object). Messages are made and freed without it.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstdint>

#include "kernel/arena/lock.h"
#include "kernel/fs/inode.h"
#include "kernel/ipc/nameless.h"
#include "kernel/ipc/unix_message.h"
#include "kernel/task/wait_queue.h"

namespace belljar::kernel {

class SocketFile;

// How a call on a socket waits.
struct SocketWait {
  bool is_nonblocking = false;
  Deadline deadline = kNever;  // SO_RCVTIMEO, SO_SNDTIMEO; EAGAIN when it has passed
};

struct Outgoing {
  Ref<PassedFiles> files;
  ucred sender{};
  Ref<UnixSocket> to;  // of sendto(2); null: the peer
  SocketWait wait;
};

struct Incoming {
  // In:
  bool is_peek = false;
  bool is_wait_all = false;
  SocketWait wait;
  // Out:
  std::uint64_t size = 0;       // copied
  std::uint64_t full_size = 0;  // of a message that did not fit: all of it
  ucred sender{0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
  bool has_sender = false;
  Ref<PassedFiles> files;
  Ref<UnixName> source;
};

class UnixSocket final : public Counted {
 public:
  static constexpr std::uint32_t kBufferDefault = 212992;
  static constexpr std::uint32_t kBufferMax = 2 * 212992;
  static constexpr std::uint32_t kBacklogMax = 4096;

  explicit UnixSocket(int type) : type_(type) {}

  // ---- unix_socket.cc: connections ----
  static void connect_pair(const Ref<UnixSocket>& one, const Ref<UnixSocket>& other);
  SysResult<void> listen(std::uint32_t backlog);
  // Of streams and seqpackets: waits for room in the listener's backlog.
  SysResult<void> connect(const Ref<UnixSocket>& listener, const SocketWait& wait);
  // Of datagrams: whom send(2) reaches and recv(2) hears; null: all again.
  SysResult<void> set_peer(Ref<UnixSocket> peer);
  SysResult<Ref<UnixSocket>> accept(const SocketWait& wait);
  SysResult<void> shutdown(int how);
  void close();
  Events ready();
  Ref<UnixSocket> peer();

  // ---- unix_names.cc ----
  SysResult<void> bind(std::string_view text);
  SysResult<void> bind_automatically();
  Ref<UnixName> name();
  // The socket behind an address, of this one's type; ECONNREFUSED, EPROTOTYPE, or what the walk says.
  SysResult<Ref<UnixSocket>> find(std::string_view text);

  // ---- unix_transfer.cc ----
  SysResult<std::uint64_t> send(Buffers& from, Outgoing& outgoing);
  SysResult<void> receive(Buffers& to, Incoming& incoming);
  std::uint64_t bytes_waiting();
  std::uint64_t bytes_under_way() const { return under_way_.load(std::memory_order_relaxed); }
  void give_space(std::uint32_t charge);

  // The description that stands for it; null as long as nobody has accepted it, and once it is closed.
  void set_file(SocketFile* file);

  int type() const { return type_; }
  bool is_connected_type() const { return type_ != SOCK_DGRAM; }
  bool is_listening();
  ucred peer_credentials();
  int take_error();

  WaitQueue queue;
  const NamelessFacts facts = NamelessFacts::make();

  // Options (socket(7)); plain values that may be set at any time.
  std::atomic<std::uint32_t> send_buffer = kBufferDefault;
  std::atomic<std::uint32_t> receive_buffer = kBufferDefault;
  std::atomic<std::uint64_t> send_timeout_ns = 0;  // 0: none
  std::atomic<std::uint64_t> receive_timeout_ns = 0;
  std::atomic<std::uint64_t> switches = 0;  // those that are on, by number
  std::atomic<bool> passes_credentials = false;

 private:
  friend class UnixCollection;

  enum class State : std::uint8_t { idle, listening, connected, closed };

  SysResult<void> enqueue_connection(const Ref<UnixSocket>& connection);
  SysResult<void> begin_connection(const Ref<UnixSocket>& connection, const ucred& listener);
  void undo_connection();
  void unbind();
  void peer_closed(bool was_unread);

  SysResult<std::uint64_t> send_stream(Buffers& from, Outgoing& outgoing);
  SysResult<std::uint64_t> send_packet(Buffers& from, Outgoing& outgoing);
  SysResult<void> wait_for_space(const SocketWait& wait);
  SysResult<void> deliver(const Ref<UnixSocket>& to, UnixMessage* message);
  SysResult<UnixMessage*> make_part(Buffers& from, std::uint32_t size, Outgoing& outgoing);
  // What receive() does in one go, with the lock held. Messages that are read go to `done`, to be freed without it.
  enum class Took : std::uint8_t { nothing, something, needs_rights };
  SysResult<Took> take(Buffers& to, Incoming& incoming, MessageList& done, bool has_rights);
  SysResult<Took> take_bytes(Buffers& to, Incoming& incoming, MessageList& done, bool has_rights);
  SysResult<Took> take_packet(Buffers& to, Incoming& incoming, MessageList& done);
  SysResult<Took> take_unlocked(Buffers& to, Incoming& incoming);
  static void take_extras(UnixMessage& message, Incoming& incoming);
  bool has_room() const { return under_way_.load() < send_buffer.load(std::memory_order_relaxed); }

  const int type_;
  std::atomic<std::uint64_t> under_way_ = 0;  // charges of messages sent and not read yet

  Lock lock_{LockRank::object};
  State state_ = State::idle;
  bool is_read_shut_ = false;
  bool is_write_shut_ = false;
  int error_ = 0;
  Ref<UnixSocket> peer_;
  MessageList messages_;
  Ref<UnixName> name_;
  Ref<Inode> inode_;  // bound to it by a path
  UnixSocket* next_abstract_ = nullptr;
  ucred peer_credentials_{0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};

  // Of a listening socket: connections that nobody has accepted, linked by next_pending_.
  ucred listen_credentials_{};
  UnixSocket* first_pending_ = nullptr;
  UnixSocket* last_pending_ = nullptr;
  UnixSocket* next_pending_ = nullptr;
  std::uint32_t pending_count_ = 0;
  std::uint32_t backlog_ = 0;

  // Rights lock: for UnixCollection.
  UnixSocket* pending_of_ = nullptr;  // the listener that holds it until it is accepted
  SocketFile* file_ = nullptr;
  std::uint32_t references_under_way_ = 0;
  bool is_garbage_ = false;
};

// Of the running process, as SO_PEERCRED and SCM_CREDENTIALS tell them.
ucred own_credentials();

// Turns what ended a wait into the error of a socket call: EAGAIN for a timeout; no restart where one was set.
std::unexpected<Errno> wait_error(Errno code, const SocketWait& wait);

}  // namespace belljar::kernel
