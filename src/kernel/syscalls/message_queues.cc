// mq_open(3), mq_unlink(3), mq_send(3), mq_receive(3), mq_notify(3), mq_getattr(3).
#include <fcntl.h>
#include <sys/stat.h>

#include "kernel/ipc/message_queue.h"
#include "kernel/ipc/nameless.h"
#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/path_argument.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kPrioritiesMax = 32768;  // MQ_PRIO_MAX
constexpr std::size_t kCookieSize = 32;          // NOTIFY_COOKIE_LEN

// As the raw calls have it.
struct RawAttributes {
  std::int64_t flags = 0;
  std::int64_t messages_max = 0;
  std::int64_t message_size_max = 0;
  std::int64_t messages = 0;
  std::int64_t rest[4] = {};
};

struct RawNotification {
  sigval value;
  std::int32_t signal;
  std::int32_t how;
  std::int32_t rest[12];
};
static_assert(sizeof(RawNotification) == 64);

// The name as the raw calls have it: without the slash that mq_open(3) takes off.
class QueueName {
 public:
  QueueName() {}
  SysResult<void> read(UserAddress from) {
    size_ = TRY(copy_in_string(text_, from, sizeof text_));
    if (size_ == 0) return error(ENOENT);
    const std::string_view name = text();
    if (name == "." || name == ".." || name.contains('/')) return error(EACCES);
    if (name.size() > kNameMax) return error(ENAMETOOLONG);
    return {};
  }
  std::string_view text() const { return {text_, size_}; }

 private:
  std::size_t size_ = 0;
  char text_[kPathMax];
};

SysResult<QueueWait> read_wait(UserAddress timeout) {
  if (timeout == 0) return QueueWait{};
  const auto time = TRY(copy_in<timespec>(timeout));
  const std::uint64_t since_begin = TRY(to_nanoseconds(time));
  return QueueWait{.deadline = TRY(deadline_of(CLOCK_REALTIME, since_begin, TimeKind::absolute))};
}

// What SIGEV_THREAD would be told through, a socket of netlink(7), does not exist here.
SysResult<void> check_no_thread(const RawNotification& asked) {
  char cookie[kCookieSize];
  TRY_VOID(copy_in(cookie, reinterpret_cast<UserAddress>(asked.value.sival_ptr), sizeof cookie));
  const Ref<File> socket = TRY(current().files->get(asked.signal));
  return error(socket->kind() == FileKind::socket ? EINVAL : ENOTSOCK);
}

}  // namespace

SyscallResult sys_mq_open(const SyscallArguments& arguments) {
  const auto flags = arguments.get<std::uint32_t>(1);
  QueueRequest request{.flags = flags, .mode = arguments.get<std::uint32_t>(2) & ~current_umask()};
  if (arguments.values[3] != 0) {
    const auto attributes = TRY(copy_in<RawAttributes>(arguments.values[3]));
    request.messages_max = attributes.messages_max;
    request.message_size_max = attributes.message_size_max;
  }
  QueueName name;
  TRY_VOID(name.read(arguments.values[0]));
  bool is_made = false;
  const Ref<MessageQueue> queue = TRY(queue_names().find(name.text(), request, &is_made));
  auto file = queue->open(nullptr, flags);
  const SysResult<int> fd =
      file ? current().files->add(std::move(*file), CloseOnExec::yes) : SysResult<int>(std::unexpected(file.error()));
  if (fd) return *fd;
  if (is_made) static_cast<void>(queue_names().unlink(name.text(), current().credentials));
  return std::unexpected(fd.error());
}

SyscallResult sys_mq_unlink(const SyscallArguments& arguments) {
  QueueName name;
  TRY_VOID(name.read(arguments.values[0]));
  TRY_VOID(queue_names().unlink(name.text(), current().credentials));
  return 0;
}

SyscallResult sys_mq_timedsend(const SyscallArguments& arguments) {
  QueueWait how = TRY(read_wait(arguments.values[4]));
  const auto priority = arguments.get<std::uint32_t>(3);
  if (priority >= kPrioritiesMax) return error(EINVAL);
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  MessageQueue& queue = *TRY(message_queue_of(*file));
  if (!file->is_writable()) return error(EBADF);
  const std::uint64_t size = arguments.values[2];
  if (size > static_cast<std::uint64_t>(queue.message_size_max)) return error(EMSGSIZE);
  OwnedMessage message = OwnedMessage::make(static_cast<std::uint32_t>(size), priority);
  if (message.get() == nullptr) return error(ENOMEM);
  TRY_VOID(copy_in(message->text(), arguments.values[1], size));
  how.is_nonblocking = file->is_nonblocking();
  TRY_VOID(queue.send(std::move(message), how));
  return 0;
}

SyscallResult sys_mq_timedreceive(const SyscallArguments& arguments) {
  QueueWait how = TRY(read_wait(arguments.values[4]));
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  MessageQueue& queue = *TRY(message_queue_of(*file));
  if (!file->is_readable()) return error(EBADF);
  if (arguments.values[2] < static_cast<std::uint64_t>(queue.message_size_max)) return error(EMSGSIZE);
  how.is_nonblocking = file->is_nonblocking();
  const OwnedMessage message = TRY(queue.receive(how));
  if (arguments.values[3] != 0) TRY_VOID(copy_out(arguments.values[3], message->priority));
  TRY_VOID(copy_out(arguments.values[1], message->text(), message->size));
  return message->size;
}

SyscallResult sys_mq_notify(const SyscallArguments& arguments) {
  const UserAddress address = arguments.values[1];
  RawNotification asked{};
  if (address != 0) {
    asked = TRY(copy_in<RawNotification>(address));
    if (asked.how == SIGEV_THREAD) TRY_VOID(check_no_thread(asked));
    if (asked.how != SIGEV_NONE && asked.how != SIGEV_SIGNAL) return error(EINVAL);
    if (asked.how == SIGEV_SIGNAL && (asked.signal < 0 || asked.signal >= NSIG)) return error(EINVAL);
  }
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  MessageQueue& queue = *TRY(message_queue_of(*file));
  const Pid own = current_process().pid;
  if (address == 0) {
    queue.drop_notice(own);
    return 0;
  }
  TRY_VOID(queue.ask_notice({.owner = own, .how = asked.how, .signal = asked.signal, .value = asked.value}));
  return 0;
}

SyscallResult sys_mq_getsetattr(const SyscallArguments& arguments) {
  RawAttributes wanted;
  if (arguments.values[1] != 0) {
    wanted = TRY(copy_in<RawAttributes>(arguments.values[1]));
    if ((wanted.flags & ~std::int64_t{O_NONBLOCK}) != 0) return error(EINVAL);
  }
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  MessageQueue& queue = *TRY(message_queue_of(*file));
  const std::uint32_t flags = file->flags();
  const RawAttributes before{.flags = flags & O_NONBLOCK,
                             .messages_max = queue.messages_max,
                             .message_size_max = queue.message_size_max,
                             .messages = queue.state().messages};
  if (arguments.values[1] != 0) {
    file->set_flags((flags & ~static_cast<std::uint32_t>(O_NONBLOCK)) | static_cast<std::uint32_t>(wanted.flags));
  }
  if (arguments.values[2] != 0) TRY_VOID(copy_out(arguments.values[2], before));
  return 0;
}

}  // namespace belljar::kernel
