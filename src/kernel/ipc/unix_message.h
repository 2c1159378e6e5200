// What travels between sockets of unix(7): bytes, who sent them, and files.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string_view>

#include "kernel/arena/lock.h"
#include "kernel/arena/ref.h"
#include "kernel/fs/file.h"

namespace belljar::kernel {

class UnixSocket;

// An address of unix(7), without its family: a path with its NUL, or a NUL and an abstract name. Never changes.
class UnixName final : public Counted {
 public:
  static constexpr std::size_t kSizeMax = 109;  // a path of 108 characters, and its NUL
  explicit UnixName(std::string_view text);
  std::string_view text() const { return {text_, size_}; }
  bool is_abstract() const { return size_ > 0 && text_[0] == '\0'; }

 private:
  std::uint16_t size_;
  char text_[kSizeMax];
};

// Files under way in a message (SCM_RIGHTS). All that are in some queue are listed, so that sockets that only messages
// hold can be found: unix_collect.h.
class PassedFiles final : public Counted {
 public:
  static constexpr std::uint32_t kCountMax = 253;

  // Null when the heap is full.
  static Ref<PassedFiles> make(std::uint32_t count_max);
  ~PassedFiles() override;

  void add(Ref<File> file) { files_[count_++] = file.leak(); }
  std::uint32_t count() const { return count_; }
  File& file(std::uint32_t index) const { return *files_[index]; }

 private:
  friend class UnixCollection;

  File** files_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t count_max_ = 0;
  // Rights lock: the list of those in queues.
  UnixSocket* holder_ = nullptr;  // in whose queue it is; null: in none
  PassedFiles* next_ = nullptr;
  PassedFiles* previous_ = nullptr;
};

// One write. Its bytes follow it in memory.
struct UnixMessage {
  UnixMessage* next = nullptr;
  std::uint32_t begin = 0;  // bytes before were read already (streams)
  std::uint32_t size = 0;   // bytes in all
  ucred sender{};
  Ref<PassedFiles> files;
  Ref<UnixName> source;    // null: sent by a socket without name
  Ref<UnixSocket> origin;  // whose send buffer it counts in

  char* data() { return reinterpret_cast<char*>(this + 1); }
  std::uint32_t left() const { return size - begin; }
  std::uint32_t charge() const { return size + kOverhead; }

  static constexpr std::uint32_t kOverhead = 512;
};

UnixMessage* make_message(std::uint32_t size);
// Gives its space in the sender's buffer back, and wakes who waits for that.
void free_message(UnixMessage* message);

struct MessageList {
  UnixMessage* first = nullptr;
  UnixMessage* last = nullptr;

  bool is_empty() const { return first == nullptr; }
  void append(UnixMessage* message) {
    (last == nullptr ? first : last->next) = message;
    last = message;
  }
  UnixMessage* pop() {
    UnixMessage* const message = first;
    first = message->next;
    if (first == nullptr) last = nullptr;
    message->next = nullptr;
    return message;
  }
};
void free_messages(MessageList list);

}  // namespace belljar::kernel
