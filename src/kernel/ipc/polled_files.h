// Room for the files of one call of poll(2) or select(2): few on the stack, many in the heap.
#pragma once

#include <cstddef>
#include <new>

#include "kernel/arena/heap.h"
#include "kernel/ipc/poll.h"

namespace belljar::kernel {

class PolledFiles {
 public:
  explicit PolledFiles(std::size_t count) : count_(count) {
    if (count <= kFew) {
      files_ = few_;
      return;
    }
    files_ = static_cast<PolledFile*>(heap_allocate(count * sizeof(PolledFile)));
    for (std::size_t i = 0; files_ != nullptr && i < count; ++i) new (&files_[i]) PolledFile;
  }
  ~PolledFiles() {
    if (files_ == few_ || files_ == nullptr) return;
    for (std::size_t i = 0; i < count_; ++i) files_[i].~PolledFile();
    heap_free(files_, count_ * sizeof(PolledFile));
  }
  PolledFiles(const PolledFiles&) = delete;
  PolledFiles& operator=(const PolledFiles&) = delete;

  // False: the heap is full.
  bool is_valid() const { return files_ != nullptr; }
  PolledFile* data() { return files_; }
  PolledFile& operator[](std::size_t index) { return files_[index]; }
  std::size_t size() const { return count_; }

 private:
  static constexpr std::size_t kFew = 8;
  PolledFile few_[kFew];
  PolledFile* files_;
  std::size_t count_;
};

}  // namespace belljar::kernel
