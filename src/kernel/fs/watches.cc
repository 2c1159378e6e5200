#include "kernel/fs/watches.h"

#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kernel/fs/tree.h"
#include "kernel/ipc/nameless.h"

namespace belljar::kernel {

class InotifyFile;

struct Watch {
  InotifyFile* instance;
  Inode* inode;
  int descriptor;
  std::uint32_t mask;
  Watch* next_of_inode = nullptr;
  Watch* next_of_instance = nullptr;
};

class Watches {
 public:
  Watch* first = nullptr;
};

namespace {

constexpr std::uint32_t kEventsMax = 16384;  // fs.inotify.max_queued_events
constexpr std::uint32_t kWatchesMax = 65536;

// One event that waits; followed by its name.
struct Event {
  Event* next;
  int descriptor;
  std::uint32_t mask;
  std::uint32_t cookie;
  std::uint32_t name_size;

  char* text() { return reinterpret_cast<char*>(this + 1); }
  std::string_view name() { return {text(), name_size}; }
  std::size_t memory_size() const { return sizeof(Event) + name_size; }
  // What inotify(7) pads the name to.
  std::size_t padded_name_size() const { return name_size == 0 ? 0 : (name_size / 16 + 1) * 16; }
  std::size_t size() const { return sizeof(inotify_event) + padded_name_size(); }
};

WatchState& state() {
  return *arena_roots().watches;
}

}  // namespace

class InotifyFile final : public AnonymousFile {
 public:
  InotifyFile() : AnonymousFile("inotify") {}
  ~InotifyFile() override;
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position) override;
  Events ready() override;
  WaitQueue* queue() override { return &queue_; }
  SysResult<std::uint64_t> ioctl(std::uint32_t request, std::uint64_t argument) override;
  FileKind kind() const override { return FileKind::inotify; }

  // All with the watch lock held.
  void add_event(int descriptor, std::uint32_t mask, std::uint32_t cookie, std::string_view name);
  Watch* find(const Inode& inode) const {
    for (Watch* watch = first_; watch != nullptr; watch = watch->next_of_instance) {
      if (watch->inode == &inode) return watch;
    }
    return nullptr;
  }
  Watch* find(int descriptor) const {
    for (Watch* watch = first_; watch != nullptr; watch = watch->next_of_instance) {
      if (watch->descriptor == descriptor) return watch;
    }
    return nullptr;
  }
  SysResult<int> watch(Inode& inode, std::uint32_t mask);
  // Tells IN_IGNORED, and forgets it.
  void drop(Watch* watch);

 private:
  SysResult<std::uint64_t> read_some(Buffers& to);

  WaitQueue queue_;
  Watch* first_ = nullptr;
  int next_descriptor_ = 1;
  Event* first_event_ = nullptr;
  Event* last_event_ = nullptr;
  std::uint32_t event_count_ = 0;
};

InotifyFile::~InotifyFile() {
  LockGuard guard(state().lock);
  while (first_ != nullptr) drop(first_);
  while (first_event_ != nullptr) {
    Event* const event = first_event_;
    first_event_ = event->next;
    heap_free(event, event->memory_size());
  }
}

void InotifyFile::add_event(int descriptor, std::uint32_t mask, std::uint32_t cookie, std::string_view name) {
  if (last_event_ != nullptr && last_event_->descriptor == descriptor && last_event_->mask == mask && cookie == 0 &&
      last_event_->cookie == 0 && last_event_->name() == name) {
    return;
  }
  if (event_count_ >= kEventsMax) {
    if (last_event_->mask == IN_Q_OVERFLOW) return;
    descriptor = -1;
    mask = IN_Q_OVERFLOW;
    cookie = 0;
    name = {};
  }
  void* const memory = heap_allocate(sizeof(Event) + name.size());
  if (memory == nullptr) return;
  auto* const event = new (memory) Event{nullptr, descriptor, mask, cookie, static_cast<std::uint32_t>(name.size())};
  if (!name.empty()) memcpy(event->text(), name.data(), name.size());
  (last_event_ == nullptr ? first_event_ : last_event_->next) = event;
  last_event_ = event;
  ++event_count_;
  queue_.wake_all(POLLIN);
}

SysResult<int> InotifyFile::watch(Inode& inode, std::uint32_t mask) {
  if (Watch* const known = find(inode)) {
    if ((mask & IN_MASK_CREATE) != 0) return error(EEXIST);
    known->mask = (mask & IN_MASK_ADD) != 0 ? known->mask | mask : mask;
    return known->descriptor;
  }
  if (state().count >= kWatchesMax) return error(ENOSPC);
  Watches* watches = inode.watches;
  if (watches == nullptr) {
    watches = make_object<Watches>();
    if (watches == nullptr) return error(ENOMEM);
    inode.watches = watches;
  }
  Watch* const added = make_object<Watch>(this, &inode, next_descriptor_, mask, watches->first, first_);
  if (added == nullptr) return error(ENOMEM);
  ++next_descriptor_;
  watches->first = added;
  first_ = added;
  ++state().count;
  return added->descriptor;
}

void InotifyFile::drop(Watch* watch) {
  add_event(watch->descriptor, IN_IGNORED, 0, {});
  Watch** link = &first_;
  while (*link != watch) link = &(*link)->next_of_instance;
  *link = watch->next_of_instance;
  Watches* const watches = watch->inode->watches;
  link = &watches->first;
  while (*link != watch) link = &(*link)->next_of_inode;
  *link = watch->next_of_inode;
  if (watches->first == nullptr) {
    watch->inode->watches = nullptr;
    delete_object(watches);
  }
  --state().count;
  delete_object(watch);
}

SysResult<std::uint64_t> InotifyFile::read_some(Buffers& to) {
  LockGuard guard(state().lock);
  std::uint64_t moved = 0;
  while (first_event_ != nullptr) {
    Event* const event = first_event_;
    if (event->size() > to.left()) {
      if (moved == 0) return error(EINVAL);
      break;
    }
    const inotify_event head{event->descriptor, event->mask, event->cookie,
                             static_cast<std::uint32_t>(event->padded_name_size())};
    TRY_VOID(to.put(&head, sizeof head));
    if (event->name_size != 0) {
      TRY_VOID(to.put(event->text(), event->name_size));
      TRY_VOID(to.put_zeros(event->padded_name_size() - event->name_size));
    }
    moved += event->size();
    first_event_ = event->next;
    if (first_event_ == nullptr) last_event_ = nullptr;
    --event_count_;
    heap_free(event, event->memory_size());
  }
  return moved;
}

SysResult<std::uint64_t> InotifyFile::read(Buffers& to, std::uint64_t*) {
  std::uint64_t moved = TRY(read_some(to));
  if (moved != 0) return moved;
  if (is_nonblocking()) return error(EAGAIN);
  Waiting waiting(queue_, POLLIN);
  while (true) {
    moved = TRY(read_some(to));
    if (moved != 0) return moved;
    TRY_VOID(waiting.sleep());
  }
}

Events InotifyFile::ready() {
  LockGuard guard(state().lock);
  return first_event_ == nullptr ? 0 : POLLIN | POLLRDNORM;
}

SysResult<std::uint64_t> InotifyFile::ioctl(std::uint32_t request, std::uint64_t argument) {
  if (request != FIONREAD) return error(ENOTTY);
  int bytes = 0;
  {
    LockGuard guard(state().lock);
    for (const Event* event = first_event_; event != nullptr; event = event->next) {
      bytes += static_cast<int>(event->size());
    }
  }
  TRY_VOID(copy_out(argument, bytes));
  return 0;
}

void tell_watches_slowly(Inode& inode, std::uint32_t mask, std::uint32_t cookie, std::string_view name) {
  LockGuard guard(state().lock);
  Watches* const watches = inode.watches;
  Watch* watch = watches == nullptr ? nullptr : watches->first;
  while (watch != nullptr) {
    Watch* const next = watch->next_of_inode;
    if ((watch->mask & mask & IN_ALL_EVENTS) != 0) {
      watch->instance->add_event(watch->descriptor, mask, cookie, name);
      if ((watch->mask & IN_ONESHOT) != 0) watch->instance->drop(watch);
    }
    watch = next;
  }
}

void tell_watches_of_dentry(Dentry& dentry, std::uint32_t mask) {
  if (!dentry.inode) return;
  if (dentry.inode->is_folder()) mask |= IN_ISDIR;
  if (dentry.parent && dentry.parent->inode) tell_watches(*dentry.parent->inode, mask, 0, dentry.name());
  tell_watches(*dentry.inode, mask);
}

void tell_watches_of_file_slowly(File& file, std::uint32_t mask) {
  if (file.dentry() != nullptr) {
    LockGuard guard(tree_lock());
    tell_watches_of_dentry(*file.dentry(), mask);
  } else if (file.inode() != nullptr) {
    tell_watches(*file.inode(), mask);
  }
}

std::uint32_t new_watch_cookie() {
  return has_any_watch() ? state().next_cookie.fetch_add(1, std::memory_order_relaxed) : 1;
}

void drop_watches_slowly(Inode& inode) {
  LockGuard guard(state().lock);
  while (Watches* const watches = inode.watches) {
    Watch* const watch = watches->first;
    if ((watch->mask & IN_DELETE_SELF) != 0) {
      watch->instance->add_event(watch->descriptor, IN_DELETE_SELF, 0, {});
    }
    watch->instance->drop(watch);
  }
}

SysResult<Ref<File>> make_inotify_file() {
  auto file = make_ref<InotifyFile>();
  if (!file) return error(ENOMEM);
  return Ref<File>(std::move(file));
}

namespace {

InotifyFile* as_inotify(File& file) {
  return file.kind() == FileKind::inotify ? static_cast<InotifyFile*>(&file) : nullptr;
}

}  // namespace

SysResult<int> add_watch(File& file, Inode& inode, std::uint32_t mask) {
  InotifyFile* const instance = as_inotify(file);
  if (instance == nullptr) return error(EINVAL);
  LockGuard guard(state().lock);
  return instance->watch(inode, mask);
}

SysResult<void> remove_watch(File& file, int descriptor) {
  InotifyFile* const instance = as_inotify(file);
  if (instance == nullptr) return error(EINVAL);
  LockGuard guard(state().lock);
  Watch* const watch = instance->find(descriptor);
  if (watch == nullptr) return error(EINVAL);
  instance->drop(watch);
  return {};
}

}  // namespace belljar::kernel
