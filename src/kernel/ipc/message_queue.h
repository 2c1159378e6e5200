// POSIX message queues: mq_overview(7). They have names of their own, and are in no folder of the tree.
#pragma once

#include <signal.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "kernel/arena/lock.h"
#include "kernel/fs/inode.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

// What /proc/sys/fs/mqueue/ tells; no task may go beyond.
inline constexpr std::int64_t kQueueMessagesMax = 10;
inline constexpr std::int64_t kQueueMessageSizeMax = 8192;
inline constexpr std::uint32_t kQueuesMax = 256;

// One message, in the heap; its text lies behind it.
struct QueueMessage {
  QueueMessage* next = nullptr;
  std::uint32_t priority = 0;
  std::uint32_t size = 0;
  char* text() { return reinterpret_cast<char*>(this + 1); }
};

class [[nodiscard]] OwnedMessage {
 public:
  // Null when the heap is full.
  static OwnedMessage make(std::uint32_t size, std::uint32_t priority);
  static OwnedMessage adopt(QueueMessage* message) { return OwnedMessage(message); }
  OwnedMessage(OwnedMessage&& other) noexcept : message_(other.leak()) {}
  OwnedMessage& operator=(OwnedMessage&&) = delete;
  ~OwnedMessage();

  QueueMessage* get() const { return message_; }
  QueueMessage* operator->() const { return message_; }
  QueueMessage* leak() { return std::exchange(message_, nullptr); }

 private:
  explicit OwnedMessage(QueueMessage* message) : message_(message) {}
  QueueMessage* message_;
};

// A thread that waits for a message, or for room for its own; in the heap, as it is another process that serves it.
class QueueWaiter final : public Counted {
 public:
  ~QueueWaiter() override { const OwnedMessage left = OwnedMessage::adopt(message); }

  WaitQueue queue;
  // Under the message queue's lock. A sender's message until it is served; a receiver's from then on.
  QueueMessage* message = nullptr;
  bool is_served = false;
  QueueWaiter* next = nullptr;
};

// Those who wait, in the order in which they came; a reference each.
class QueueWaiters {
 public:
  void add(QueueWaiter& waiter);
  Ref<QueueWaiter> take_first();
  void remove(QueueWaiter& waiter);

 private:
  QueueWaiter* first_ = nullptr;
};

// Whether a call waits, and until when.
struct QueueWait {
  bool is_nonblocking = false;
  Deadline deadline = kNever;
};

// mq_notify(3): told once, to one process, that a message has come to an empty queue.
struct QueueNotice {
  Pid owner = 0;  // 0: nobody is to be told
  std::int32_t how = SIGEV_NONE;
  std::int32_t signal = 0;
  sigval value{};
};

class MessageQueue final : public Inode {
 public:
  MessageQueue(std::string_view name, std::uint32_t file_mode, std::int64_t messages_max, std::int64_t message_size_max,
               const Credentials& who);
  ~MessageQueue() override;

  SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) override;
  SysResult<void> change(const AttributeChange& change) override;

  // EAGAIN, ETIMEDOUT, or kRestart for a signal, where they could not.
  SysResult<void> send(OwnedMessage message, const QueueWait& how);
  SysResult<OwnedMessage> receive(const QueueWait& how);

  // EBUSY where a process is to be told already.
  SysResult<void> ask_notice(const QueueNotice& notice);
  // Of this process only.
  void drop_notice(Pid owner);

  struct State {
    std::int64_t messages = 0;
    std::uint64_t bytes = 0;
    QueueNotice notice;
  };
  State state();
  Events ready();

  std::string_view name() const { return {name_, name_size_}; }
  std::uint64_t charged_bytes() const;

  const std::int64_t messages_max;
  const std::int64_t message_size_max;
  WaitQueue readiness;

 private:
  friend class QueueNames;

  // `waiter` joins those who wait where it can't be done now.
  bool try_send(OwnedMessage& message, QueueWaiter* waiter);
  QueueMessage* try_receive(QueueWaiter* waiter);
  SysResult<void> wait(QueueWaiters& among, QueueWaiter& waiter, Waiting& waiting, Deadline deadline);
  void insert(QueueMessage& message);
  QueueMessage* take_first();

  // Under `lock`, by falling priority, in order of their coming.
  QueueMessage* first_ = nullptr;
  std::int64_t count_ = 0;
  std::uint64_t bytes_ = 0;
  QueueWaiters senders_;
  QueueWaiters receivers_;
  QueueNotice notice_;

  MessageQueue* next_named_ = nullptr;  // of QueueNames
  std::uint8_t name_size_;
  char name_[kNameMax];
};

struct QueueRequest {
  std::uint32_t flags = 0;  // of open(2)
  std::uint32_t mode = 0;   // less the umask
  std::int64_t messages_max = kQueueMessagesMax;
  std::int64_t message_size_max = kQueueMessageSizeMax;
};

// All queues of the sandbox, which they are charged to together.
class QueueNames {
 public:
  // mq_open(3). `is_made`: there was none.
  SysResult<Ref<MessageQueue>> find(std::string_view name, const QueueRequest& request, bool* is_made);
  // mq_unlink(3).
  SysResult<void> unlink(std::string_view name, const Credentials& who);
  void uncharge(const MessageQueue& queue);

 private:
  MessageQueue** link_of(std::string_view name);
  SysResult<Ref<MessageQueue>> make(std::string_view name, const QueueRequest& request);

  Lock lock_{LockRank::pair};
  MessageQueue* first_ = nullptr;  // that have a name; a reference each
  std::uint32_t count_ = 0;        // with and without one
  std::uint64_t bytes_ = 0;
};

QueueNames& queue_names();

// EBADF where it is another file.
SysResult<MessageQueue*> message_queue_of(File& file);

}  // namespace belljar::kernel
