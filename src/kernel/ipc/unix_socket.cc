#include "kernel/ipc/unix_socket.h"

#include <poll.h>

#include <algorithm>

#include "kernel/ipc/unix_collect.h"
#include "kernel/task/process.h"

namespace belljar::kernel {
namespace {

constexpr Events kReadable = POLLIN | POLLRDNORM;
constexpr Events kWritable = POLLOUT | POLLWRNORM | POLLWRBAND;
constexpr Events kHangUp = kReadable | kWritable | POLLHUP | POLLRDHUP | POLLERR;

}  // namespace

ucred own_credentials() {
  const Credentials& who = current().credentials;
  return {.pid = current_process().pid, .uid = who.euid, .gid = who.egid};
}

std::unexpected<Errno> wait_error(Errno code, const SocketWait& wait) {
  if (value_of(code) == ETIMEDOUT) return error(EAGAIN);
  if (value_of(code) == kRestart && wait.deadline != kNever) return error(EINTR);
  return std::unexpected(code);
}

void UnixSocket::connect_pair(const Ref<UnixSocket>& one, const Ref<UnixSocket>& other) {
  // Nobody else knows them yet.
  one->peer_ = other;
  other->peer_ = one;
  one->state_ = other->state_ = State::connected;
  one->peer_credentials_ = other->peer_credentials_ = own_credentials();
}

SysResult<void> UnixSocket::listen(std::uint32_t backlog) {
  if (!is_connected_type()) return error(EOPNOTSUPP);
  LockGuard guard(lock_);
  if (!name_) return error(EINVAL);
  if (state_ != State::idle && state_ != State::listening) return error(EINVAL);
  state_ = State::listening;
  backlog_ = std::min(backlog, kBacklogMax);
  listen_credentials_ = own_credentials();
  peer_credentials_ = listen_credentials_;
  return {};
}

bool UnixSocket::is_listening() {
  LockGuard guard(lock_);
  return state_ == State::listening;
}

// EAGAIN where the backlog is full; the queue tells when that changes (POLLOUT).
SysResult<void> UnixSocket::enqueue_connection(const Ref<UnixSocket>& connection) {
  {
    LockGuard rights(UnixCollection::lock());
    LockGuard guard(lock_);
    if (state_ != State::listening || is_read_shut_) return error(ECONNREFUSED);
    if (pending_count_ > backlog_) return error(EAGAIN);
    UnixSocket* const added = Ref<UnixSocket>(connection).leak();
    (last_pending_ == nullptr ? first_pending_ : last_pending_->next_pending_) = added;
    last_pending_ = added;
    added->pending_of_ = this;
    ++pending_count_;
  }
  queue.wake_all(kReadable);
  return {};
}

SysResult<void> UnixSocket::begin_connection(const Ref<UnixSocket>& connection, const ucred& listener) {
  LockGuard guard(lock_);
  if (state_ == State::connected) return error(EISCONN);
  if (state_ != State::idle) return error(EINVAL);
  state_ = State::connected;
  peer_ = connection;
  peer_credentials_ = listener;
  connection->peer_ = Ref<UnixSocket>::of(this);
  connection->state_ = State::connected;
  connection->peer_credentials_ = own_credentials();
  return {};
}

void UnixSocket::undo_connection() {
  Ref<UnixSocket> connection;
  {
    LockGuard guard(lock_);
    connection = std::move(peer_);
    if (state_ == State::connected) state_ = State::idle;
  }
  if (!connection) return;
  Ref<UnixSocket> self;
  LockGuard guard(connection->lock_);
  self = std::move(connection->peer_);
}

SysResult<void> UnixSocket::connect(const Ref<UnixSocket>& listener, const SocketWait& wait) {
  Ref<UnixSocket> connection = make_ref<UnixSocket>(type_);
  if (!connection) return error(ENOMEM);
  ucred credentials{};
  {
    LockGuard guard(listener->lock_);
    connection->name_ = listener->name_;
    credentials = listener->listen_credentials_;
  }
  connection->passes_credentials.store(listener->passes_credentials.load());
  TRY_VOID(begin_connection(connection, credentials));
  SysResult<void> result = listener->enqueue_connection(connection);
  if (!result && value_of(result.error()) == EAGAIN && !wait.is_nonblocking) {
    Waiting waiting(listener->queue, POLLOUT);
    while (true) {
      result = listener->enqueue_connection(connection);
      if (result || value_of(result.error()) != EAGAIN) break;
      const SysResult<void> slept = waiting.sleep(wait.deadline);
      if (slept) continue;
      result = wait_error(slept.error(), wait);
      break;
    }
  }
  if (!result) {
    undo_connection();
    return result;
  }
  queue.wake_all(kWritable);
  return {};
}

SysResult<void> UnixSocket::set_peer(Ref<UnixSocket> peer) {
  {
    LockGuard guard(lock_);
    std::swap(peer_, peer);
    state_ = peer_ ? State::connected : State::idle;
  }
  queue.wake_all(kWritable);
  return {};
}

SysResult<Ref<UnixSocket>> UnixSocket::accept(const SocketWait& wait) {
  if (!is_connected_type()) return error(EOPNOTSUPP);
  const auto take_one = [this]() -> SysResult<Ref<UnixSocket>> {
    LockGuard rights(UnixCollection::lock());
    LockGuard guard(lock_);
    if (state_ != State::listening) return error(EINVAL);
    UnixSocket* const first = first_pending_;
    if (first == nullptr) return error(is_read_shut_ ? EINVAL : EAGAIN);
    first_pending_ = first->next_pending_;
    if (first_pending_ == nullptr) last_pending_ = nullptr;
    first->next_pending_ = nullptr;
    first->pending_of_ = nullptr;
    --pending_count_;
    return Ref<UnixSocket>::adopt(first);
  };
  SysResult<Ref<UnixSocket>> taken = take_one();
  if (!taken && value_of(taken.error()) == EAGAIN && !wait.is_nonblocking) {
    Waiting waiting(queue, POLLIN);
    while (true) {
      taken = take_one();
      if (taken || value_of(taken.error()) != EAGAIN) break;
      const SysResult<void> slept = waiting.sleep(wait.deadline);
      if (!slept) return wait_error(slept.error(), wait);
    }
  }
  if (taken) queue.wake_all(POLLOUT);
  return taken;
}

SysResult<void> UnixSocket::shutdown(int how) {
  if (how < SHUT_RD || how > SHUT_RDWR) return error(EINVAL);
  const bool reads = how != SHUT_WR;
  const bool writes = how != SHUT_RD;
  Ref<UnixSocket> other;
  {
    LockGuard guard(lock_);
    is_read_shut_ = is_read_shut_ || reads;
    is_write_shut_ = is_write_shut_ || writes;
    if (is_connected_type()) other = peer_;
  }
  if (other) {
    {
      LockGuard guard(other->lock_);
      other->is_read_shut_ = other->is_read_shut_ || writes;
      other->is_write_shut_ = other->is_write_shut_ || reads;
    }
    other->queue.wake_all(kHangUp);
  }
  queue.wake_all(kHangUp);
  return {};
}

void UnixSocket::peer_closed(bool was_unread) {
  {
    LockGuard guard(lock_);
    is_read_shut_ = is_write_shut_ = true;
    if (was_unread) error_ = ECONNRESET;
  }
  queue.wake_all(kHangUp);
}

void UnixSocket::close() {
  Ref<UnixSocket> other;
  MessageList unread;
  UnixSocket* pending = nullptr;
  {
    LockGuard guard(lock_);
    if (state_ == State::closed) return;
    state_ = State::closed;
    is_read_shut_ = is_write_shut_ = true;
    other = std::move(peer_);
    unread = std::exchange(messages_, {});
    pending = std::exchange(first_pending_, nullptr);
    last_pending_ = nullptr;
    pending_count_ = 0;
  }
  unbind();
  queue.wake_all(kHangUp);
  if (other && is_connected_type()) other->peer_closed(!unread.is_empty());
  while (pending != nullptr) {
    const Ref<UnixSocket> connection = Ref<UnixSocket>::adopt(pending);
    pending = connection->next_pending_;
    // Nobody will ever read what its peer has sent or will send.
    if (const Ref<UnixSocket> client = connection->peer()) client->peer_closed(true);
    connection->close();
  }
  UnixCollection::throw_away(unread);
}

void UnixSocket::set_file(SocketFile* file) {
  LockGuard rights(UnixCollection::lock());
  file_ = file;
}

Ref<UnixSocket> UnixSocket::peer() {
  LockGuard guard(lock_);
  return peer_;
}

ucred UnixSocket::peer_credentials() {
  LockGuard guard(lock_);
  return peer_credentials_;
}

int UnixSocket::take_error() {
  LockGuard guard(lock_);
  return std::exchange(error_, 0);
}

Events UnixSocket::ready() {
  LockGuard guard(lock_);
  Events events = 0;
  if (error_ != 0) events |= POLLERR;
  if (!messages_.is_empty() || first_pending_ != nullptr) events |= kReadable;
  if (is_read_shut_) events |= kReadable | POLLRDHUP;
  if (is_read_shut_ && is_write_shut_) events |= POLLHUP;
  if (is_connected_type() && state_ == State::idle) events |= POLLHUP;
  const bool is_writable = under_way_.load() * 4 <= send_buffer.load(std::memory_order_relaxed);
  if (is_writable && state_ != State::listening) events |= kWritable;
  return events;
}

}  // namespace belljar::kernel
