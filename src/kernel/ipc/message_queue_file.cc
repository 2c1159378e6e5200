// Descriptors of message queues.
#include <fcntl.h>

#include <algorithm>

#include "kernel/base/text.h"
#include "kernel/fs/inode_file.h"
#include "kernel/ipc/message_queue.h"
#include "kernel/ipc/nameless.h"

namespace belljar::kernel {
namespace {

class MessageQueueFile final : public InodeFile {
 public:
  explicit MessageQueueFile(Ref<MessageQueue> queue) : InodeFile(std::move(queue), nullptr) {}

  MessageQueue& messages() const { return static_cast<MessageQueue&>(*inode()); }
  FileKind kind() const override { return FileKind::message_queue; }
  bool is_seekable() const override { return true; }
  Events ready() override { return messages().ready(); }
  WaitQueue* queue() override { return &messages().readiness; }
  SysResult<void> sync() override { return error(EINVAL); }

  // A line about its state (mq_overview(7)).
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position) override {
    const MessageQueue::State state = messages().state();
    const bool is_signal = state.notice.owner != 0 && state.notice.how == SIGEV_SIGNAL;
    char line[128];
    TextWriter writer(line, sizeof line);
    const auto field = [&](std::string_view name, std::uint64_t value, std::size_t width) {
      const std::size_t begin = (writer << name).text().size();
      writer.number(value);
      while (writer.text().size() - begin < width) writer << ' ';
    };
    field("QSIZE:", state.bytes, 10);
    field(" NOTIFY:", state.notice.owner != 0 ? static_cast<std::uint32_t>(state.notice.how) : 0, 5);
    field(" SIGNO:", is_signal ? static_cast<std::uint32_t>(state.notice.signal) : 0, 5);
    field(" NOTIFY_PID:", static_cast<std::uint32_t>(state.notice.owner), 6);
    const std::string_view text = (writer << '\n').text();
    if (*position >= text.size()) return 0;
    const std::string_view rest = text.substr(*position);
    const std::size_t count = std::min<std::uint64_t>(rest.size(), to.left());
    TRY_VOID(to.put(rest.data(), count));
    *position += count;
    return count;
  }

  void closed_by(std::uint32_t process_id) override {
    messages().drop_notice(static_cast<Pid>(process_id));
    InodeFile::closed_by(process_id);
  }

  std::size_t describe(char* text, std::size_t size) const override {
    TextWriter writer(text, size);
    writer << '/' << messages().name();
    if (messages().links == 0) writer << " (deleted)";
    return writer.text().size();
  }
};

}  // namespace

SysResult<Ref<File>> MessageQueue::open(Ref<Dentry>, std::uint32_t flags) {
  Ref<MessageQueueFile> file = make_ref<MessageQueueFile>(Ref<MessageQueue>::of(this));
  if (!file) return error(ENOMEM);
  file->set_flags(flags & (O_ACCMODE | O_NONBLOCK));
  return Ref<File>(std::move(file));
}

SysResult<MessageQueue*> message_queue_of(File& file) {
  if (file.kind() != FileKind::message_queue) return error(EBADF);
  return &static_cast<MessageQueueFile&>(file).messages();
}

}  // namespace belljar::kernel
