// The objects from which everything in the arena is found; at the very start of the heap. One row for each part.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/arena/heap.h"
#include "kernel/arena/layout.h"
#include "kernel/arena/lock.h"

namespace belljar::kernel {

class FileDataState;
class Inode;
class ProcState;
class QueueNames;
class ProcessTable;
class RandomState;
struct SandboxFacts;
class TextCache;
class TimerState;
class TreeState;
class UnixSocketState;
class WatchState;
class ConsoleState;
class ConsoleTerminal;
struct ProcessorAnswers;
class TerminalState;
class RecordLockState;

struct HeapState {
  static constexpr int kClasses = kHeapClasses;
  Lock lock{LockRank::heap};
  void* free[kClasses] = {};
  std::uint64_t fresh = 0;               // nothing beyond this address was ever used
  std::uint64_t used = 0;                // bytes
  std::uint64_t objects[kClasses] = {};  // in use, of each class
};

struct ArenaRoots {
  HeapState heap;
  ProcessTable* processes = nullptr;
  TreeState* tree = nullptr;
  FileDataState* file_data = nullptr;
  RecordLockState* record_locks = nullptr;
  WatchState* watches = nullptr;
  TimerState* timers = nullptr;
  UnixSocketState* unix_sockets = nullptr;
  QueueNames* message_queues = nullptr;
  TerminalState* terminals = nullptr;
  TextCache* texts = nullptr;
  ConsoleState* console = nullptr;
  ConsoleTerminal* console_terminal = nullptr;  // null: the standard streams are pipes
  // Of the folders from which files are collected: /tmp, and those of shm::Boot::own_folders.
  static constexpr std::size_t kWritableMax = 16;
  Inode* writable[kWritableMax] = {};
  std::uint32_t writable_count = 0;
  Lock epoll_links{LockRank::pair};               // ipc/epoll.h
  std::atomic<std::uint64_t> nameless_files = 0;  // numbers of pipes and sockets, given so far
  SandboxFacts* facts = nullptr;
  RandomState* random = nullptr;
  ProcState* proc = nullptr;
  ProcessorAnswers* processor_answers = nullptr;
  // How often files changed their size whose mappings reach past their end (mm/address_space.h), and how many of these
  // changes all processes have been told of.
  std::atomic<std::uint64_t> file_sizes = 0;
  std::atomic<std::uint64_t> file_sizes_told = 0;
};

inline ArenaRoots& arena_roots() {
  return *reinterpret_cast<ArenaRoots*>(kArenaBase + kHeapOffset);
}

// The object of a row, made by whoever asks first; for parts that need nothing to begin with.
template <typename T>
T& root_object(T*& row) {
  std::atomic_ref<T*> slot(row);
  T* object = slot.load(std::memory_order_acquire);
  if (object != nullptr) [[likely]]
    return *object;
  T* const made = make_object<T>();
  if (made == nullptr) __builtin_trap();  // before the heap has room for anything
  if (slot.compare_exchange_strong(object, made)) return *made;
  delete_object(made);
  return *object;
}

// Once, in the first process, on an arena of zeros.
void make_arena_roots();

}  // namespace belljar::kernel
