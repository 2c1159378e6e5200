// Counted references to objects in the arena. The last one to go destroys the object.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernel/arena/heap.h"

namespace belljar::kernel {

// Base of everything counted. Classes that are derived from it are made by make_ref<T>() only.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void acquire() { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (drop()) destroy();
  }
  // False where the last reference has gone already; for who knows of an object without holding it.
  bool try_acquire() {
    std::uint32_t count = count_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (count_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  std::uint32_t count() const { return count_.load(std::memory_order_relaxed); }

 protected:
  virtual ~Counted() = default;
  // Called when the last reference has gone, while the object is still whole.
  virtual void retire() {}

  // The two halves of release(), for long chains that must not be destroyed by recursion. True: it was the last one.
  bool drop() { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  void destroy() {
    retire();
    const std::size_t size = size_;
    this->~Counted();
    heap_free(this, size);
  }

 private:
  template <typename T, typename... Arguments>
  friend auto make_ref(Arguments&&... arguments);

  std::atomic<std::uint32_t> count_ = 1;
  std::uint32_t size_ = 0;
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  // Takes over a reference that the caller holds.
  static Ref adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // A new reference.
  static Ref of(T* object) {
    if (object != nullptr) object->acquire();
    return adopt(object);
  }
  Ref(const Ref& other) : Ref(of(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U>
  Ref(Ref<U> other) : object_(other.leak()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  // Gives the reference up without releasing it.
  T* leak() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

// A new object with one reference; null when the heap is full.
template <typename T, typename... Arguments>
auto make_ref(Arguments&&... arguments) {
  T* object = make_object<T>(std::forward<Arguments>(arguments)...);
  if (object != nullptr) static_cast<Counted*>(object)->size_ = sizeof(T);
  return Ref<T>::adopt(object);
}

}  // namespace belljar::kernel
