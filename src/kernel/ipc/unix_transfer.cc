// Sending and receiving on sockets of unix(7).
#include <poll.h>

#include <algorithm>

#include "kernel/ipc/unix_collect.h"
#include "kernel/ipc/unix_socket.h"
#include "kernel/task/process.h"

namespace belljar::kernel {
namespace {

constexpr Events kReadable = POLLIN | POLLRDNORM;
constexpr std::uint32_t kStreamPartMax = 32 * 1024 - sizeof(UnixMessage);

bool is_same_sender(const ucred& one, const ucred& other) {
  return one.pid == other.pid && one.uid == other.uid && one.gid == other.gid;
}

}  // namespace

void UnixSocket::give_space(std::uint32_t charge) {
  const std::uint64_t left = under_way_.fetch_sub(charge) - charge;
  if (left * 4 <= send_buffer.load(std::memory_order_relaxed)) queue.wake_all(POLLOUT | POLLWRNORM | POLLWRBAND);
}

// ---- sending ----

SysResult<void> UnixSocket::wait_for_space(const SocketWait& wait) {
  if (has_room()) return {};
  if (wait.is_nonblocking) return error(EAGAIN);
  Waiting waiting(queue, POLLOUT);
  while (true) {
    if (has_room()) return {};
    {
      LockGuard guard(lock_);
      if (is_write_shut_) return error(EPIPE);
    }
    const SysResult<void> slept = waiting.sleep(wait.deadline);
    if (!slept) return wait_error(slept.error(), wait);
  }
}

SysResult<UnixMessage*> UnixSocket::make_part(Buffers& from, std::uint32_t size, Outgoing& outgoing) {
  UnixMessage* const message = make_message(size);
  if (message == nullptr) return error(ENOBUFS);
  const SysResult<void> taken = from.take(message->data(), size);
  if (!taken) {
    free_message(message);
    return std::unexpected(taken.error());
  }
  message->sender = outgoing.sender;
  message->files = std::move(outgoing.files);
  {
    LockGuard guard(lock_);
    message->source = name_;
  }
  message->origin = Ref<UnixSocket>::of(this);
  under_way_.fetch_add(message->charge());
  return message;
}

// Takes the message over, also where it fails: EPIPE or, for datagrams, ECONNREFUSED.
SysResult<void> UnixSocket::deliver(const Ref<UnixSocket>& to, UnixMessage* message) {
  const auto append = [&] {
    LockGuard guard(to->lock_);
    if (to->state_ == State::closed || to->is_read_shut_) return false;
    to->messages_.append(message);
    return true;
  };
  bool is_delivered = false;
  if (message->files) {
    LockGuard rights(UnixCollection::lock());
    is_delivered = append();
    if (is_delivered) UnixCollection::note(*message->files, *to);
  } else {
    is_delivered = append();
  }
  if (is_delivered) {
    to->queue.wake_all(kReadable);
    return {};
  }
  free_message(message);
  return error(EPIPE);
}

SysResult<std::uint64_t> UnixSocket::send_stream(Buffers& from, Outgoing& outgoing) {
  std::uint64_t sent = 0;
  while (from.left() > 0) {
    Ref<UnixSocket> to;
    SysResult<void> done;
    {
      LockGuard guard(lock_);
      to = peer_;
      if (is_write_shut_) done = error(EPIPE);
    }
    if (done && !to) return error(ENOTCONN);
    if (done) done = wait_for_space(outgoing.wait);
    if (done) {
      const std::uint64_t half = send_buffer.load(std::memory_order_relaxed) / 2;
      const auto size = static_cast<std::uint32_t>(std::min({from.left(), std::uint64_t{kStreamPartMax}, half}));
      const SysResult<UnixMessage*> message = make_part(from, size, outgoing);
      done = message ? deliver(to, *message) : std::unexpected(message.error());
      if (done) sent += size;
    }
    if (done) continue;
    if (sent != 0) return sent;
    return std::unexpected(done.error());
  }
  return sent;
}

SysResult<std::uint64_t> UnixSocket::send_packet(Buffers& from, Outgoing& outgoing) {
  const std::uint64_t size = from.left();
  if (size > send_buffer.load(std::memory_order_relaxed) - 32) return error(EMSGSIZE);
  Ref<UnixSocket> to = outgoing.to;
  {
    LockGuard guard(lock_);
    if (!to) to = peer_;
    if (is_write_shut_) return error(EPIPE);
  }
  if (!to) return error(ENOTCONN);
  {
    LockGuard guard(to->lock_);
    const bool is_for_us = to->peer_.get() == nullptr || to->peer_.get() == this;
    if (type_ == SOCK_DGRAM && to->state_ != State::closed && !is_for_us) return error(EPERM);
  }
  TRY_VOID(wait_for_space(outgoing.wait));
  UnixMessage* const message = TRY(make_part(from, static_cast<std::uint32_t>(size), outgoing));
  const SysResult<void> delivered = deliver(to, message);
  if (delivered) return size;
  if (type_ != SOCK_DGRAM) return std::unexpected(delivered.error());
  bool is_gone = false;
  {
    LockGuard guard(to->lock_);
    is_gone = to->state_ == State::closed;
  }
  if (!is_gone) return error(EPIPE);
  if (!outgoing.to) TRY_VOID(set_peer({}));
  return error(ECONNREFUSED);
}

SysResult<std::uint64_t> UnixSocket::send(Buffers& from, Outgoing& outgoing) {
  if (outgoing.files) TRY_VOID(UnixCollection::check_count(outgoing.files->count()));
  return type_ == SOCK_STREAM ? send_stream(from, outgoing) : send_packet(from, outgoing);
}

// ---- receiving ----

void UnixSocket::take_extras(UnixMessage& message, Incoming& incoming) {
  if (!incoming.has_sender) {
    incoming.sender = message.sender;
    incoming.source = message.source;
    incoming.has_sender = true;
  }
  if (!message.files) return;
  if (incoming.is_peek) {
    incoming.files = message.files;
  } else {
    UnixCollection::unnote(*message.files);
    incoming.files = std::move(message.files);
  }
}

SysResult<UnixSocket::Took> UnixSocket::take_bytes(Buffers& to, Incoming& incoming, MessageList& done,
                                                   bool has_rights) {
  Took took = Took::nothing;
  for (UnixMessage* message = messages_.first; message != nullptr && to.left() > 0 && !incoming.files;) {
    UnixMessage* const next = message->next;
    // A second look, for these, goes on where the first one took the bytes away.
    if (message->files && !has_rights) return Took::needs_rights;
    // Bytes of different writers are told apart where the reader asked who they are.
    const bool tells = incoming.has_sender && passes_credentials.load(std::memory_order_relaxed);
    if (tells && !is_same_sender(incoming.sender, message->sender)) return Took::something;
    const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(message->left(), to.left()));
    const SysResult<void> put = to.put(message->data() + message->begin, size);
    if (!put && took == Took::nothing) return std::unexpected(put.error());
    if (!put) break;
    take_extras(*message, incoming);
    incoming.size += size;
    took = Took::something;
    if (!incoming.is_peek) {
      message->begin += size;
      if (message->left() == 0) done.append(messages_.pop());
    }
    message = next;
  }
  return took;
}

SysResult<UnixSocket::Took> UnixSocket::take_packet(Buffers& to, Incoming& incoming, MessageList& done) {
  UnixMessage* const message = messages_.first;
  const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(message->size, to.left()));
  const SysResult<void> put = to.put(message->data(), size);
  take_extras(*message, incoming);
  incoming.size = size;
  incoming.full_size = message->size;
  // As on Linux, a message whose bytes could not be stored is lost.
  if (!incoming.is_peek) done.append(messages_.pop());
  if (!put) return std::unexpected(put.error());
  return Took::something;
}

SysResult<UnixSocket::Took> UnixSocket::take(Buffers& to, Incoming& incoming, MessageList& done, bool has_rights) {
  LockGuard guard(lock_);
  if (type_ == SOCK_SEQPACKET && state_ != State::connected && state_ != State::closed) return error(ENOTCONN);
  if (type_ == SOCK_STREAM && (state_ == State::idle || state_ == State::listening)) return error(EINVAL);
  if (messages_.is_empty()) {
    if (error_ != 0) return error(std::exchange(error_, 0));
    return is_read_shut_ ? Took::something : Took::nothing;
  }
  if (type_ == SOCK_STREAM) return take_bytes(to, incoming, done, has_rights);
  if (messages_.first->files && !has_rights) return Took::needs_rights;
  return take_packet(to, incoming, done);
}

SysResult<UnixSocket::Took> UnixSocket::take_unlocked(Buffers& to, Incoming& incoming) {
  MessageList done;
  const std::uint64_t before = incoming.size;
  // A peek leaves the bytes, so that there is one look only.
  SysResult<Took> took = incoming.is_peek ? Took::needs_rights : take(to, incoming, done, false);
  if (took && *took == Took::needs_rights) {
    const bool has_taken = incoming.size != before;
    LockGuard rights(UnixCollection::lock());
    took = take(to, incoming, done, true);
    if (has_taken) took = Took::something;
  }
  free_messages(done);
  return took;
}

SysResult<void> UnixSocket::receive(Buffers& to, Incoming& incoming) {
  const auto is_enough = [&](Took took, std::uint64_t before) {
    if (took == Took::nothing) return false;
    const bool is_end = incoming.size == before;  // shut down
    return type_ != SOCK_STREAM || !incoming.is_wait_all || incoming.is_peek || is_end || to.left() == 0 ||
           static_cast<bool>(incoming.files);
  };
  if (type_ == SOCK_STREAM && to.left() == 0) return {};
  std::uint64_t before = 0;
  SysResult<Took> took = take_unlocked(to, incoming);
  if (took && is_enough(*took, before)) return {};
  if (took && incoming.wait.is_nonblocking) took = error(EAGAIN);
  if (took) {
    Waiting waiting(queue, POLLIN | POLLRDHUP);
    while (true) {
      before = incoming.size;
      took = take_unlocked(to, incoming);
      if (!took || is_enough(*took, before)) break;
      const SysResult<void> slept = waiting.sleep(incoming.wait.deadline);
      if (slept) continue;
      took = wait_error(slept.error(), incoming.wait);
      break;
    }
  }
  if (took || incoming.size != 0) return {};
  return std::unexpected(took.error());
}

std::uint64_t UnixSocket::bytes_waiting() {
  LockGuard guard(lock_);
  std::uint64_t sum = 0;
  for (const UnixMessage* message = messages_.first; message != nullptr; message = message->next) {
    sum += message->left();
    if (type_ != SOCK_STREAM) break;
  }
  return sum;
}

}  // namespace belljar::kernel
