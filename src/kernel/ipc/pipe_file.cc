// The open ends of pipes, and how named pipes are opened.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "kernel/ipc/pipe.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

// The pipe behind a named pipe's inode; made when the first end is opened, gone with the last.
SysResult<Ref<Pipe>> attach_fifo(Inode& inode) {
  Ref<Pipe> fresh = Pipe::make();
  if (!fresh) return error(ENOMEM);
  LockGuard guard(inode.lock);
  if (inode.endpoint == nullptr) inode.endpoint = fresh.leak();
  auto* const pipe = static_cast<Pipe*>(inode.endpoint);
  ++pipe->opens_;
  return Ref<Pipe>::of(pipe);
}

void detach_fifo(Inode& inode, Pipe& pipe) {
  {
    LockGuard guard(inode.lock);
    if (--pipe.opens_ != 0) return;
    inode.endpoint = nullptr;
  }
  pipe.release();
}

PipeFile::PipeFile(Ref<Pipe> pipe, std::uint32_t flags, Ref<Inode> inode, Ref<Dentry> dentry)
    : pipe_(std::move(pipe)), inode_(std::move(inode)), dentry_(std::move(dentry)) {
  set_flags(flags);
  reads_ = is_readable();
  writes_ = is_writable();
  const Pipe::Ends ends = pipe_->ends();
  seen_writers_ = ends.writers == 0 ? ends.writes_opened : ends.writes_opened - 1;
  pipe_->add_ends(reads_, writes_);
}

PipeFile::~PipeFile() {
  pipe_->remove_ends(reads_, writes_);
  if (inode_) detach_fifo(*inode_, *pipe_);
}

SysResult<Ref<File>> PipeFile::reopen(std::uint32_t flags) {
  Ref<PipeFile> file = make_ref<PipeFile>(pipe_, flags, nullptr, nullptr);
  if (!file) return error(ENOMEM);
  return Ref<File>(std::move(file));
}

SysResult<std::uint64_t> PipeFile::read(Buffers& to, std::uint64_t*) {
  if (to.left() == 0) return 0;
  SysResult<std::uint64_t> result = pipe_->read_some(to);
  if (result || value_of(result.error()) != EAGAIN || is_nonblocking()) return result;
  Waiting waiting(pipe_->queue, POLLIN);
  while (true) {
    result = pipe_->read_some(to);
    if (result || value_of(result.error()) != EAGAIN) return result;
    TRY_VOID(waiting.sleep());
  }
}

SysResult<std::uint64_t> PipeFile::write(Buffers& from, std::uint64_t*) {
  if (from.left() == 0) return 0;
  const bool is_packet = (flags() & O_DIRECT) != 0;
  std::uint64_t moved = 0;
  const auto try_once = [&] {
    const SysResult<std::uint64_t> part = pipe_->write_some(from, is_packet);
    if (part) moved += *part;
    return part;
  };
  // A blocking write ends when all is written, or by an error; what was written before it counts.
  const auto finish = [&](Errno code) -> SysResult<std::uint64_t> {
    if (value_of(code) == EPIPE) raise_signal(SIGPIPE);
    if (moved != 0) return moved;
    return std::unexpected(code);
  };
  SysResult<std::uint64_t> part = try_once();
  if (!part && value_of(part.error()) != EAGAIN) return finish(part.error());
  if (from.left() == 0) return moved;
  if (is_nonblocking()) return finish(Errno{EAGAIN});
  Waiting waiting(pipe_->queue, POLLOUT);
  while (true) {
    part = try_once();
    if (!part && value_of(part.error()) != EAGAIN) return finish(part.error());
    if (from.left() == 0) return moved;
    const SysResult<void> slept = waiting.sleep();
    if (!slept) return finish(slept.error());
  }
}

SysResult<std::uint64_t> PipeFile::ioctl(std::uint32_t request, std::uint64_t argument) {
  if (request != FIONREAD) return File::ioctl(request, argument);
  TRY_VOID(copy_out(argument, static_cast<int>(pipe_->bytes())));
  return 0;
}

SysResult<void> PipeFile::stat(struct stat* status) {
  if (inode_) return inode_->fill_stat(status);
  fill_nameless_stat(status, pipe_->facts, S_IFIFO | 0600, kPipeDevice);
  return {};
}

std::size_t PipeFile::describe(char* text, std::size_t size) const {
  return describe_numbered(text, size, "pipe", pipe_->facts.number);
}

SysResult<Ref<File>> open_fifo(Inode& inode, std::uint32_t flags, Ref<Dentry> dentry) {
  Ref<Pipe> pipe = TRY(attach_fifo(inode));
  const std::uint32_t access = flags & O_ACCMODE;
  const bool is_nonblocking = (flags & O_NONBLOCK) != 0;
  const Pipe::Ends before = pipe->ends();
  if (access == O_WRONLY && is_nonblocking && before.readers == 0) {
    detach_fifo(inode, *pipe);
    return error(ENXIO);
  }
  Ref<PipeFile> file = make_ref<PipeFile>(pipe, flags & ~static_cast<std::uint32_t>(O_CREAT | O_EXCL | O_CLOEXEC),
                                          Ref<Inode>::of(&inode), std::move(dentry));
  if (!file) {
    detach_fifo(inode, *pipe);
    return error(ENOMEM);
  }
  if (is_nonblocking || access == O_RDWR) return Ref<File>(std::move(file));
  Waiting waiting(pipe->queue);
  while (true) {
    const Pipe::Ends now = pipe->ends();
    // An end that was there when we came, or came and went while we slept, counts too.
    const bool met = access == O_RDONLY
                         ? (now.writers | before.writers) != 0 || now.writes_opened != before.writes_opened
                         : (now.readers | before.readers) != 0 || now.reads_opened != before.reads_opened;
    if (met) return Ref<File>(std::move(file));
    TRY_VOID(waiting.sleep());
  }
}

}  // namespace belljar::kernel
