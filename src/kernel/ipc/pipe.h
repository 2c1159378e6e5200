// Pipes and named pipes: pipe(7), fifo(7). A pipe is a ring of slots, one page each at most, as Linux has it: what is
// written joins the last page while it fits, a packet (O_DIRECT) has a slot of its own.
#pragma once

#include <cstdint>

#include "kernel/arena/lock.h"
#include "kernel/arena/ref.h"
#include "kernel/fs/inode.h"
#include "kernel/ipc/nameless.h"
#include "kernel/task/wait_queue.h"

namespace belljar::kernel {

inline constexpr std::uint32_t kPipePage = 4096;  // also PIPE_BUF
inline constexpr std::uint32_t kPipeSlotsDefault = 16;
inline constexpr std::uint32_t kPipeBytesMax = 1U << 20;  // /proc/sys/fs/pipe-max-size

// Bytes in a page of the heap. Whoever holds one outside a pipe frees it with free_slot().
struct PipeSlot {
  char* page = nullptr;
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
  bool is_packet = false;
};
void free_slot(PipeSlot& slot);

class Pipe final : public Counted {
 public:
  // Null when the heap is full.
  static Ref<Pipe> make();
  ~Pipe() override;

  // EAGAIN where nothing can be moved now; otherwise what could be. A read answers 0 once there is no writer.
  SysResult<std::uint64_t> read_some(Buffers& to);
  // EPIPE where there is no reader (the caller raises the signal). Up to PIPE_BUF bytes go all at once.
  SysResult<std::uint64_t> write_some(Buffers& from, bool is_packet);

  std::uint64_t bytes();
  std::uint32_t capacity();
  SysResult<std::uint32_t> set_capacity(std::uint64_t bytes);

  // For splice(2) and tee(2): moving whole slots. A slot taken or reserved keeps its place until it is given back.
  // The first slot, whole or in part. EAGAIN: empty; no value and size 0: the end.
  SysResult<PipeSlot> take_slot(std::uint32_t size_max);
  // What could not be passed on goes back to the front.
  void return_slot(PipeSlot slot);
  void finish_taken();
  // Room for one slot. EAGAIN: full; EPIPE.
  SysResult<void> reserve();
  // Fills what was reserved; an empty slot gives the place back.
  void fill_reserved(PipeSlot slot);
  // Copies of the first `index` + 1st slot, for tee(2). ENOENT: there is none.
  SysResult<PipeSlot> copy_slot(std::uint32_t index, std::uint32_t size_max);

  // Ends that are open; opening wakes who waits in open_fifo().
  void add_ends(bool reads, bool writes);
  void remove_ends(bool reads, bool writes);
  struct Ends {
    std::uint32_t readers, writers;
    std::uint32_t reads_opened, writes_opened;  // ever
  };
  Ends ends();
  // `seen_writers`: writes_opened as it was when a reader opened; without a writer since then there is no hang-up yet.
  Events ready(bool reads, bool writes, std::uint32_t seen_writers);

  WaitQueue queue;
  const NamelessFacts facts = NamelessFacts::make();

 private:
  friend SysResult<Ref<Pipe>> attach_fifo(Inode& inode);
  friend void detach_fifo(Inode& inode, Pipe& pipe);

  bool is_full() const { return used_ + reserved_ >= slot_count_; }
  PipeSlot& slot(std::uint32_t index) { return slots_[(first_ + index) % slot_count_]; }
  SysResult<std::uint32_t> write_part(Buffers& from, bool is_packet);
  char* take_page();
  void give_page(char* page);
  void drop_first();

  Lock lock_{LockRank::object};
  PipeSlot* slots_ = nullptr;
  std::uint32_t slot_count_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t reserved_ = 0;  // places of slots that splice(2) has in hand
  char* spare_ = nullptr;       // a page to use next, warm in the cache
  Ends ends_{};
  std::uint32_t opens_ = 0;  // of a named pipe; under its inode's lock
};

class PipeFile final : public File {
 public:
  // `inode` and `dentry`: of a named pipe.
  PipeFile(Ref<Pipe> pipe, std::uint32_t flags, Ref<Inode> inode, Ref<Dentry> dentry);
  ~PipeFile() override;

  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position) override;
  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t* position) override;
  Events ready() override { return pipe_->ready(reads_, writes_, seen_writers_); }
  WaitQueue* queue() override { return &pipe_->queue; }
  SysResult<std::uint64_t> ioctl(std::uint32_t request, std::uint64_t argument) override;
  SysResult<void> stat(struct stat* status) override;
  std::size_t describe(char* text, std::size_t size) const override;
  SysResult<Ref<File>> reopen(std::uint32_t flags) override;
  Inode* inode() const override { return inode_.get(); }
  Dentry* dentry() const override { return dentry_.get(); }
  FileKind kind() const override { return FileKind::pipe; }

  Pipe& pipe() { return *pipe_; }

 private:
  Ref<Pipe> pipe_;
  Ref<Inode> inode_;
  Ref<Dentry> dentry_;
  bool reads_;
  bool writes_;
  std::uint32_t seen_writers_;
};

// The pipe behind a file, or null.
Pipe* pipe_of(File& file);

struct PipePair {
  Ref<File> reader;
  Ref<File> writer;
};
// `flags`: O_NONBLOCK, O_DIRECT.
SysResult<PipePair> make_pipe(std::uint32_t flags);

// Opens a named pipe; without O_NONBLOCK waits for the other end (fifo(7)). No lock may be held.
SysResult<Ref<File>> open_fifo(Inode& inode, std::uint32_t flags, Ref<Dentry> dentry);

}  // namespace belljar::kernel
