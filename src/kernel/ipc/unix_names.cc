// Addresses of unix(7): paths, abstract names, and names that the kernel chooses.
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/base/text.h"
#include "kernel/fs/open.h"
#include "kernel/fs/tree.h"
#include "kernel/ipc/unix_socket.h"
#include "kernel/ipc/unix_state.h"
#include "kernel/task/process.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kAutomaticNames = 0x10'0000;

std::uint32_t bucket_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char character : text) hash = (hash ^ static_cast<unsigned char>(character)) * 16777619U;
  return hash % UnixSocketState::kBuckets;
}

std::string_view path_in(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

// The socket's inode, of a path that is not there yet.
SysResult<Ref<Inode>> make_socket_inode(std::string_view path) {
  FsPlaces& fs = *current().fs;
  LockGuard tree(tree_lock());
  const LastName place = TRY(walk_to_last(fs.places, fs.places.working_folder, path, current().credentials, {}));
  return make_file_at(place, S_IFSOCK | (0777 & ~fs.umask), 0, current().credentials);
}

SysResult<Ref<Inode>> find_socket_inode(std::string_view path) {
  FsPlaces& fs = *current().fs;
  LockGuard tree(tree_lock());
  const Ref<Dentry> dentry = TRY(walk(fs.places, fs.places.working_folder, path, current().credentials, {}));
  TRY_VOID(check_access(*dentry->inode, W_OK, current().credentials));
  if (!S_ISSOCK(dentry->inode->mode)) return error(ECONNREFUSED);
  return dentry->inode;
}

}  // namespace

Ref<UnixName> UnixSocket::name() {
  LockGuard guard(lock_);
  return name_;
}

SysResult<void> UnixSocket::bind(std::string_view text) {
  Ref<UnixName> name = make_ref<UnixName>(text);
  if (!name) return error(ENOMEM);
  if (this->name()) return error(EINVAL);
  if (!name->is_abstract()) {
    SysResult<Ref<Inode>> inode = make_socket_inode(path_in(text));
    if (!inode) return error(value_of(inode.error()) == EEXIST ? EADDRINUSE : value_of(inode.error()));
    {
      LockGuard guard(lock_);
      name_ = std::move(name);
      inode_ = *inode;
    }
    LockGuard guard((*inode)->lock);
    (*inode)->endpoint = this;
    return {};
  }
  {
    UnixSocketState& state = unix_socket_state();
    UnixSocket*& bucket = state.names[bucket_of(text)];
    LockGuard guard(lock_);
    if (name_) return error(EINVAL);
    LockGuard names(state.names_lock);
    for (UnixSocket* other = bucket; other != nullptr; other = other->next_abstract_) {
      if (other->type_ == type_ && other->name_->text() == text) return error(EADDRINUSE);
    }
    name_ = std::move(name);
    next_abstract_ = bucket;
    bucket = this;
  }
  return {};
}

SysResult<void> UnixSocket::bind_automatically() {
  if (name()) return {};
  UnixSocketState& state = unix_socket_state();
  for (std::uint32_t tries = 0; tries < kAutomaticNames; ++tries) {
    char text[8];
    TextWriter writer(text, sizeof text);
    writer << '\0';
    {
      LockGuard names(state.names_lock);
      state.last_automatic = (state.last_automatic + 1) % kAutomaticNames;
      writer.hex(state.last_automatic, 5);
    }
    const SysResult<void> bound = bind(writer.text());
    if (bound || value_of(bound.error()) != EADDRINUSE) return bound;
  }
  return error(ENOSPC);
}

void UnixSocket::unbind() {
  Ref<Inode> inode;
  Ref<UnixName> name;
  {
    LockGuard guard(lock_);
    inode = std::move(inode_);
    name = name_;
  }
  if (inode) {
    LockGuard guard(inode->lock);
    if (inode->endpoint == this) inode->endpoint = nullptr;
    return;
  }
  if (!name || !name->is_abstract()) return;
  UnixSocketState& state = unix_socket_state();
  LockGuard names(state.names_lock);
  for (UnixSocket** place = &state.names[bucket_of(name->text())]; *place != nullptr;
       place = &(*place)->next_abstract_) {
    if (*place != this) continue;
    *place = next_abstract_;
    return;
  }
}

SysResult<Ref<UnixSocket>> UnixSocket::find(std::string_view text) {
  if (!text.empty() && text[0] == '\0') {
    UnixSocketState& state = unix_socket_state();
    LockGuard names(state.names_lock);
    for (UnixSocket* other = state.names[bucket_of(text)]; other != nullptr; other = other->next_abstract_) {
      if (other->type_ == type_ && other->name_->text() == text) return Ref<UnixSocket>::of(other);
    }
    return error(ECONNREFUSED);
  }
  const Ref<Inode> inode = TRY(find_socket_inode(path_in(text)));
  Ref<UnixSocket> found;
  {
    LockGuard guard(inode->lock);
    found = Ref<UnixSocket>::of(static_cast<UnixSocket*>(inode->endpoint));
  }
  if (!found) return error(ECONNREFUSED);
  if (found->type_ != type_) return error(EPROTOTYPE);
  return found;
}

}  // namespace belljar::kernel
