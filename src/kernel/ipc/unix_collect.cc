#include "kernel/ipc/unix_collect.h"

#include "kernel/arena/roots.h"
#include "kernel/ipc/socket_file.h"
#include "kernel/ipc/unix_socket.h"
#include "kernel/ipc/unix_state.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

UnixSocketState& unix_socket_state() {
  return root_object(arena_roots().unix_sockets);
}

Lock& UnixCollection::lock() {
  return unix_socket_state().rights_lock;
}

SysResult<void> UnixCollection::check_count(std::uint32_t count) {
  const std::uint64_t most = current_process().limits[RLIMIT_NOFILE].rlim_cur;
  if (unix_socket_state().files_under_way.load() + count > most) return error(ETOOMANYREFS);
  return {};
}

void UnixCollection::note(PassedFiles& files, UnixSocket& holder) {
  UnixSocketState& state = unix_socket_state();
  files.holder_ = &holder;
  files.previous_ = nullptr;
  files.next_ = state.first_under_way;
  if (files.next_ != nullptr) files.next_->previous_ = &files;
  state.first_under_way = &files;
  state.files_under_way.fetch_add(files.count());
}

void UnixCollection::unnote(PassedFiles& files) {
  if (files.holder_ == nullptr) return;
  UnixSocketState& state = unix_socket_state();
  (files.previous_ == nullptr ? state.first_under_way : files.previous_->next_) = files.next_;
  if (files.next_ != nullptr) files.next_->previous_ = files.previous_;
  files.holder_ = nullptr;
  state.files_under_way.fetch_sub(files.count());
}

void UnixCollection::forget(PassedFiles& files) {
  LockGuard guard(lock());
  unnote(files);
}

template <typename Visit>
void UnixCollection::for_each_socket(PassedFiles& files, Visit visit) {
  for (std::uint32_t i = 0; i < files.count(); ++i) {
    if (UnixSocket* const socket = socket_of(files.file(i))) visit(*socket);
  }
}

void UnixCollection::count_references(UnixSocketState& state) {
  for (PassedFiles* files = state.first_under_way; files != nullptr; files = files->next_) {
    for_each_socket(*files, [](UnixSocket& socket) { socket.references_under_way_ = 0; });
  }
  for (PassedFiles* files = state.first_under_way; files != nullptr; files = files->next_) {
    // Held by a thread that looks at it (MSG_PEEK) too: reachable.
    if (files->Counted::count() != 1) continue;
    for_each_socket(*files, [](UnixSocket& socket) { ++socket.references_under_way_; });
  }
  for (PassedFiles* files = state.first_under_way; files != nullptr; files = files->next_) {
    for_each_socket(*files, [](UnixSocket& socket) {
      socket.is_garbage_ = socket.file_ != nullptr && socket.file_->Counted::count() == socket.references_under_way_;
    });
  }
}

bool UnixCollection::is_reachable(const UnixSocket& socket) {
  return socket.pending_of_ != nullptr ? !socket.pending_of_->is_garbage_ : !socket.is_garbage_;
}

void UnixCollection::mark_reachable(UnixSocketState& state) {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (PassedFiles* files = state.first_under_way; files != nullptr; files = files->next_) {
      if (!is_reachable(*files->holder_)) continue;
      for_each_socket(*files, [&](UnixSocket& socket) {
        has_changed = has_changed || socket.is_garbage_;
        socket.is_garbage_ = false;
      });
    }
  }
}

MessageList UnixCollection::take_garbage(UnixSocketState& state) {
  MessageList garbage;
  for (PassedFiles* files = state.first_under_way; files != nullptr;) {
    UnixSocket& holder = *files->holder_;
    if (is_reachable(holder)) {
      files = files->next_;
      continue;
    }
    LockGuard guard(holder.lock_);
    // It may have been closed just now, and its messages be on their way to be freed.
    files = holder.messages_.is_empty() ? files->next_ : nullptr;
    while (!holder.messages_.is_empty()) {
      UnixMessage* const message = holder.messages_.pop();
      if (message->files) unnote(*message->files);
      garbage.append(message);
    }
    if (files == nullptr) files = state.first_under_way;
  }
  return garbage;
}

void UnixCollection::throw_away(MessageList messages) {
  if (messages.is_empty()) return;
  UnixSocketState& state = unix_socket_state();
  {
    LockGuard guard(state.rights_lock);
    while (!messages.is_empty()) {
      UnixMessage* const message = messages.pop();
      // Now, because the socket that held them may be gone before they are freed.
      if (message->files) unnote(*message->files);
      state.thrown_away.append(message);
    }
    if (state.is_clearing) return;
    state.is_clearing = true;
  }
  while (true) {
    UnixMessage* message = nullptr;
    {
      LockGuard guard(state.rights_lock);
      if (state.thrown_away.is_empty()) {
        state.is_clearing = false;
        return;
      }
      message = state.thrown_away.pop();
    }
    free_message(message);
  }
}

void UnixCollection::run() {
  UnixSocketState& state = unix_socket_state();
  if (state.files_under_way.load() == 0) return;
  MessageList garbage;
  {
    LockGuard guard(state.rights_lock);
    count_references(state);
    mark_reachable(state);
    garbage = take_garbage(state);
  }
  throw_away(garbage);
}

}  // namespace belljar::kernel
