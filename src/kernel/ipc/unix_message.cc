#include "kernel/ipc/unix_message.h"

#include <cstring>
#include <new>

#include "kernel/ipc/unix_collect.h"
#include "kernel/ipc/unix_socket.h"

namespace belljar::kernel {

UnixName::UnixName(std::string_view text) : size_(static_cast<std::uint16_t>(text.size())) {
  std::memcpy(text_, text.data(), text.size());
}

Ref<PassedFiles> PassedFiles::make(std::uint32_t count_max) {
  Ref<PassedFiles> passed = make_ref<PassedFiles>();
  if (!passed) return passed;
  passed->files_ = static_cast<File**>(heap_allocate(count_max * sizeof(File*)));
  if (passed->files_ == nullptr) return {};
  passed->count_max_ = count_max;
  return passed;
}

PassedFiles::~PassedFiles() {
  for (std::uint32_t i = 0; i < count_; ++i) files_[i]->release();
  if (files_ != nullptr) heap_free(files_, count_max_ * sizeof(File*));
}

UnixMessage* make_message(std::uint32_t size) {
  void* const memory = heap_allocate(sizeof(UnixMessage) + size);
  if (memory == nullptr) return nullptr;
  auto* const message = new (memory) UnixMessage;
  message->size = size;
  return message;
}

void free_message(UnixMessage* message) {
  if (message->files) UnixCollection::forget(*message->files);
  if (message->origin) message->origin->give_space(message->charge());
  const std::size_t size = sizeof(UnixMessage) + message->size;
  message->~UnixMessage();
  heap_free(message, size);
}

void free_messages(MessageList list) {
  while (!list.is_empty()) free_message(list.pop());
}

}  // namespace belljar::kernel
