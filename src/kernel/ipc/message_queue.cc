#include "kernel/ipc/message_queue.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>

#include "kernel/arena/heap.h"
#include "kernel/arena/roots.h"
#include "kernel/fs/tree.h"
#include "kernel/ipc/nameless.h"
#include "kernel/task/signals.h"

namespace belljar::kernel {
namespace {

constexpr Events kReadable = POLLIN | POLLRDNORM;
constexpr Events kWritable = POLLOUT | POLLWRNORM;
constexpr std::uint32_t kQueueDevice = 13;
constexpr std::uint64_t kShownSize = 80;  // of every queue, as fstat(2) has it
// What Linux charges for a message, and for a priority that is in use, beside the text (getrlimit(2)).
constexpr std::uint64_t kOverhead = 48 + 48;

// To the process that asked for it, if it is still there.
void deliver(const QueueNotice& notice) {
  if (notice.owner == 0 || notice.how != SIGEV_SIGNAL) return;
  siginfo_t info{};
  info.si_signo = notice.signal;
  info.si_code = SI_MESGQ;
  info.si_pid = current_process().pid;
  info.si_uid = current().credentials.uid;
  info.si_value = notice.value;
  const LateWakes late;
  const LockGuard guard(tasks_lock());
  if (Process* const process = find_process(notice.owner)) send_signal_locked(*process, info);
}

}  // namespace

OwnedMessage OwnedMessage::make(std::uint32_t size, std::uint32_t priority) {
  void* const memory = heap_allocate(sizeof(QueueMessage) + size);
  return OwnedMessage(memory == nullptr ? nullptr : new (memory) QueueMessage{nullptr, priority, size});
}

OwnedMessage::~OwnedMessage() {
  if (message_ != nullptr) heap_free(message_, sizeof(QueueMessage) + message_->size);
}

void QueueWaiters::add(QueueWaiter& waiter) {
  QueueWaiter** link = &first_;
  while (*link != nullptr) link = &(*link)->next;
  *link = Ref<QueueWaiter>::of(&waiter).leak();
}

Ref<QueueWaiter> QueueWaiters::take_first() {
  QueueWaiter* const waiter = first_;
  if (waiter != nullptr) first_ = std::exchange(waiter->next, nullptr);
  return Ref<QueueWaiter>::adopt(waiter);
}

void QueueWaiters::remove(QueueWaiter& waiter) {
  QueueWaiter** link = &first_;
  while (*link != nullptr && *link != &waiter) link = &(*link)->next;
  if (*link == nullptr) return;
  *link = std::exchange(waiter.next, nullptr);
  waiter.release();
}

MessageQueue::MessageQueue(std::string_view name, std::uint32_t file_mode, std::int64_t most, std::int64_t size_most,
                           const Credentials& who)
    : messages_max(most), message_size_max(size_most), name_size_(static_cast<std::uint8_t>(name.size())) {
  std::memcpy(name_, name.data(), name.size());
  number = arena_roots().nameless_files.fetch_add(1, std::memory_order_relaxed) + 1;
  device = kQueueDevice;
  mode = S_IFREG | (file_mode & 07777);
  uid = who.fsuid;
  gid = who.fsgid;
  size = kShownSize;
  access_time = modify_time = change_time = birth_time = now();
}

MessageQueue::~MessageQueue() {
  while (QueueMessage* const message = take_first()) {
    const OwnedMessage gone = OwnedMessage::adopt(message);
  }
  queue_names().uncharge(*this);
}

std::uint64_t MessageQueue::charged_bytes() const {
  return static_cast<std::uint64_t>(messages_max) * (static_cast<std::uint64_t>(message_size_max) + kOverhead);
}

SysResult<void> MessageQueue::change(const AttributeChange& change) {
  if (change.set_size) return error(EINVAL);
  LockGuard guard(lock);
  if (change.set_mode) mode = (mode & S_IFMT) | (change.mode & 07777);
  if (change.set_uid) uid = change.uid;
  if (change.set_gid) gid = change.gid;
  if (change.set_access) access_time = change.access;
  if (change.set_modify) modify_time = change.modify;
  change_time = now();
  return {};
}

void MessageQueue::insert(QueueMessage& message) {
  QueueMessage** link = &first_;
  while (*link != nullptr && (*link)->priority >= message.priority) link = &(*link)->next;
  message.next = *link;
  *link = &message;
  ++count_;
  bytes_ += message.size;
}

QueueMessage* MessageQueue::take_first() {
  QueueMessage* const message = first_;
  if (message == nullptr) return nullptr;
  first_ = std::exchange(message->next, nullptr);
  --count_;
  bytes_ -= message->size;
  return message;
}

bool MessageQueue::try_send(OwnedMessage& message, QueueWaiter* waiter) {
  Ref<QueueWaiter> receiver;
  QueueNotice notice;
  {
    LockGuard guard(lock);
    if (count_ == messages_max) {
      if (waiter != nullptr) {
        waiter->message = message.leak();
        senders_.add(*waiter);
      }
      return false;
    }
    modify_time = change_time = now();
    receiver = receivers_.take_first();
    if (receiver) {
      receiver->message = message.leak();
      receiver->is_served = true;
    } else {
      insert(*message.leak());
      // Who waits for a message comes before who asked to be told of one.
      if (count_ == 1) notice = std::exchange(notice_, {});
    }
  }
  if (receiver) {
    receiver->queue.wake_all();
  } else {
    deliver(notice);
    readiness.wake_all(kReadable);
  }
  return true;
}

QueueMessage* MessageQueue::try_receive(QueueWaiter* waiter) {
  Ref<QueueWaiter> sender;
  QueueMessage* message = nullptr;
  {
    LockGuard guard(lock);
    message = take_first();
    if (message == nullptr) {
      if (waiter != nullptr) receivers_.add(*waiter);
      return nullptr;
    }
    access_time = change_time = now();
    sender = senders_.take_first();
    if (sender) {
      insert(*std::exchange(sender->message, nullptr));
      sender->is_served = true;
    }
  }
  if (sender) {
    sender->queue.wake_all();
  } else {
    readiness.wake_all(kWritable);
  }
  return message;
}

SysResult<void> MessageQueue::wait(QueueWaiters& among, QueueWaiter& waiter, Waiting& waiting, Deadline deadline) {
  while (true) {
    const SysResult<void> slept = waiting.sleep(deadline);
    LockGuard guard(lock);
    if (waiter.is_served) return {};
    if (slept) continue;
    among.remove(waiter);
    return slept;
  }
}

SysResult<void> MessageQueue::send(OwnedMessage message, const QueueWait& how) {
  if (try_send(message, nullptr)) return {};
  if (how.is_nonblocking) return error(EAGAIN);
  const Ref<QueueWaiter> waiter = make_ref<QueueWaiter>();
  if (!waiter) return error(ENOMEM);
  Waiting waiting(waiter->queue);
  if (try_send(message, waiter.get())) return {};
  return wait(senders_, *waiter, waiting, how.deadline);
}

SysResult<OwnedMessage> MessageQueue::receive(const QueueWait& how) {
  if (QueueMessage* const message = try_receive(nullptr)) return OwnedMessage::adopt(message);
  if (how.is_nonblocking) return error(EAGAIN);
  const Ref<QueueWaiter> waiter = make_ref<QueueWaiter>();
  if (!waiter) return error(ENOMEM);
  Waiting waiting(waiter->queue);
  if (QueueMessage* const message = try_receive(waiter.get())) return OwnedMessage::adopt(message);
  TRY_VOID(wait(receivers_, *waiter, waiting, how.deadline));
  return OwnedMessage::adopt(std::exchange(waiter->message, nullptr));
}

SysResult<void> MessageQueue::ask_notice(const QueueNotice& notice) {
  LockGuard guard(lock);
  if (notice_.owner != 0) return error(EBUSY);
  notice_ = notice;
  access_time = change_time = now();
  return {};
}

void MessageQueue::drop_notice(Pid owner) {
  LockGuard guard(lock);
  if (notice_.owner == owner) notice_ = {};
}

MessageQueue::State MessageQueue::state() {
  LockGuard guard(lock);
  return {count_, bytes_, notice_};
}

Events MessageQueue::ready() {
  LockGuard guard(lock);
  return (count_ != 0 ? kReadable : 0) | (count_ < messages_max ? kWritable : 0);
}

QueueNames& queue_names() {
  return root_object(arena_roots().message_queues);
}

void QueueNames::uncharge(const MessageQueue& queue) {
  LockGuard guard(lock_);
  --count_;
  bytes_ -= queue.charged_bytes();
}

MessageQueue** QueueNames::link_of(std::string_view name) {
  MessageQueue** link = &first_;
  while (*link != nullptr && (*link)->name() != name) link = &(*link)->next_named_;
  return link;
}

SysResult<Ref<MessageQueue>> QueueNames::make(std::string_view name, const QueueRequest& request) {
  const std::int64_t most = request.messages_max, size_most = request.message_size_max;
  if (count_ >= kQueuesMax) return error(ENOSPC);
  if (most <= 0 || most > kQueueMessagesMax || size_most <= 0 || size_most > kQueueMessageSizeMax) return error(EINVAL);
  const Credentials& who = current().credentials;
  Ref<MessageQueue> made = make_ref<MessageQueue>(name, request.mode, most, size_most, who);
  if (!made) return error(ENOMEM);
  ++count_;
  bytes_ += made->charged_bytes();
  return made;
}

SysResult<Ref<MessageQueue>> QueueNames::find(std::string_view name, const QueueRequest& request, bool* is_made) {
  *is_made = false;
  // Goes after the guard: a queue that is not to be takes the lock again.
  Ref<MessageQueue> made;
  LockGuard guard(lock_);
  if (MessageQueue* const known = *link_of(name)) {
    if ((request.flags & O_CREAT) != 0 && (request.flags & O_EXCL) != 0) return error(EEXIST);
    constexpr std::uint32_t kWanted[] = {R_OK, W_OK, R_OK | W_OK};
    const std::uint32_t access = request.flags & O_ACCMODE;
    if (access == O_ACCMODE) return error(EINVAL);
    TRY_VOID(check_access(*known, kWanted[access], current().credentials));
    return Ref<MessageQueue>::of(known);
  }
  if ((request.flags & O_CREAT) == 0) return error(ENOENT);
  made = TRY(make(name, request));
  if (bytes_ > current_process().limits[RLIMIT_MSGQUEUE].rlim_cur) return error(EMFILE);
  made->next_named_ = first_;
  first_ = Ref<MessageQueue>(made).leak();
  *is_made = true;
  return made;
}

SysResult<void> QueueNames::unlink(std::string_view name, const Credentials& who) {
  Ref<MessageQueue> gone;
  LockGuard guard(lock_);
  MessageQueue** const link = link_of(name);
  if (*link == nullptr) return error(ENOENT);
  // As in a folder of uid 0 with the sticky bit.
  if (!owns(**link, who) && who.fsuid != 0) return error(EPERM);
  gone = Ref<MessageQueue>::adopt(*link);
  *link = std::exchange(gone->next_named_, nullptr);
  gone->links = 0;
  return {};
}

}  // namespace belljar::kernel
