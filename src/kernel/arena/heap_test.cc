#include "kernel/arena/heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "kernel/arena/ref.h"
#include "kernel/base/hosted.h"

namespace belljar::kernel {
namespace {

TEST(Heap, GivesZeroedMemoryThatDoesNotOverlap) {
  HostedKernel kernel;
  std::set<char*> starts;
  for (std::size_t size : {1U, 16U, 17U, 100U, 4000U, 4096U, 5000U, 70000U, 1U << 20}) {
    char* const memory = static_cast<char*>(heap_allocate(size));
    ASSERT_NE(memory, nullptr);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(memory[i], 0);
    std::memset(memory, 0x5a, size);
    starts.insert(memory);
  }
  EXPECT_EQ(starts.size(), 9U);
}

TEST(Heap, ReusesWhatWasFreedAndZeroesItAgain) {
  HostedKernel kernel;
  const std::uint64_t before = heap_bytes_used();
  for (std::size_t size : {24U, 3000U, 300'000U}) {
    for (int i = 0; i < 3; ++i) {
      char* const memory = static_cast<char*>(heap_allocate(size));
      for (std::size_t at = 0; at < size; ++at) ASSERT_EQ(memory[at], 0) << size << " at " << at;
      std::memset(memory, 0x5a, size);
      heap_free(memory, size);
    }
  }
  EXPECT_EQ(heap_bytes_used(), before);
}

TEST(Heap, RefusesWhatCanNotFit) {
  HostedKernel kernel;
  EXPECT_EQ(heap_allocate(kHeapObjectMax + 1), nullptr);
  int blocks = 0;
  while (heap_allocate(kHeapObjectMax) != nullptr) ++blocks;
  EXPECT_GE(blocks, 2);
}

class Noted final : public Counted {
 public:
  explicit Noted(int* ended) : ended_(ended) {}
  ~Noted() override { ++*ended_; }

 private:
  int* ended_;
};

TEST(Ref, EndsTheObjectWithTheLastReference) {
  HostedKernel kernel;
  const std::uint64_t before = heap_bytes_used();
  int ended = 0;
  {
    Ref<Noted> first = make_ref<Noted>(&ended);
    Ref<Counted> second = first;
    first = nullptr;
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(heap_bytes_used(), before);
}

}  // namespace
}  // namespace belljar::kernel
