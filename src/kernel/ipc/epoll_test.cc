#include "kernel/ipc/epoll.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>
#include <vector>

#include "kernel/base/hosted.h"
#include "kernel/ipc/event_file.h"
#include "kernel/ipc/poll.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kAlways = EPOLLERR | EPOLLHUP;  // as epoll_ctl(2) adds them

Ref<File> make_event(std::uint64_t count) {
  Ref<File> file = make_event_file(count, EventFileMode::counter);
  file->set_flags(O_RDWR | O_NONBLOCK);
  return file;
}

void add_to(File& file, std::uint64_t value) {
  const Area area{reinterpret_cast<std::uint64_t>(&value), sizeof value};
  Buffers from = Buffers::of_kernel(area);
  ASSERT_TRUE(file.write(from, nullptr));
}

std::uint64_t take_from(File& file) {
  std::uint64_t value = 0;
  const Area area{reinterpret_cast<std::uint64_t>(&value), sizeof value};
  Buffers to = Buffers::of_kernel(area);
  return file.read(to, nullptr) ? value : 0;
}

epoll_event event_of(std::uint32_t events, std::uint64_t data) {
  epoll_event event{};
  event.events = events | kAlways;
  event.data.u64 = data;
  return event;
}

std::vector<std::uint64_t> ready_of(Epoll& epoll, Deadline deadline = 0, std::uint32_t count = 8) {
  epoll_event events[8];
  const auto ready = epoll.wait(reinterpret_cast<std::uint64_t>(events), count, deadline);
  std::vector<std::uint64_t> data;
  for (std::uint64_t i = 0; ready && i < *ready; ++i) data.push_back(events[i].data.u64);
  return data;
}

using Data = std::vector<std::uint64_t>;

TEST(Epoll, LevelIsToldUntilItIsGone) {
  HostedKernel kernel;
  Ref<Epoll> epoll = make_ref<Epoll>();
  Ref<File> file = make_event(0);
  ASSERT_TRUE(epoll->add(file, 5, event_of(EPOLLIN, 7)));
  EXPECT_EQ(ready_of(*epoll), Data{});
  EXPECT_EQ(epoll->ready(), 0U);
  add_to(*file, 1);
  EXPECT_EQ(ready_of(*epoll), Data{7});
  EXPECT_EQ(ready_of(*epoll), Data{7});
  EXPECT_NE(epoll->ready() & POLLIN, 0U);
  take_from(*file);
  EXPECT_EQ(epoll->ready(), 0U);
  EXPECT_EQ(ready_of(*epoll), Data{});
}

TEST(Epoll, EdgeIsToldOnce) {
  HostedKernel kernel;
  Ref<Epoll> epoll = make_ref<Epoll>();
  Ref<File> file = make_event(1);
  ASSERT_TRUE(epoll->add(file, 5, event_of(EPOLLIN | EPOLLET, 7)));
  EXPECT_EQ(ready_of(*epoll), Data{7});
  EXPECT_EQ(ready_of(*epoll), Data{});
  add_to(*file, 1);
  EXPECT_EQ(ready_of(*epoll), Data{7});
  EXPECT_EQ(ready_of(*epoll), Data{});
}

TEST(Epoll, OneShotIsOffUntilItIsSetAgain) {
  HostedKernel kernel;
  Ref<Epoll> epoll = make_ref<Epoll>();
  Ref<File> file = make_event(1);
  ASSERT_TRUE(epoll->add(file, 5, event_of(EPOLLIN | EPOLLONESHOT, 7)));
  EXPECT_EQ(ready_of(*epoll), Data{7});
  add_to(*file, 1);
  EXPECT_EQ(ready_of(*epoll), Data{});
  ASSERT_TRUE(epoll->modify(*file, 5, event_of(EPOLLIN | EPOLLONESHOT, 8)));
  EXPECT_EQ(ready_of(*epoll), Data{8});
}

TEST(Epoll, ChecksWhatIsWatched) {
  HostedKernel kernel;
  Ref<Epoll> epoll = make_ref<Epoll>();
  Ref<File> file = make_event(1);
  ASSERT_TRUE(epoll->add(file, 5, event_of(EPOLLIN, 7)));
  EXPECT_EQ(value_of(epoll->add(file, 5, event_of(EPOLLIN, 7)).error()), EEXIST);
  ASSERT_TRUE(epoll->add(file, 6, event_of(EPOLLIN, 8)));
  EXPECT_EQ(ready_of(*epoll), (Data{7, 8}));
  ASSERT_TRUE(epoll->remove(*file, 5));
  EXPECT_EQ(value_of(epoll->remove(*file, 5).error()), ENOENT);
  EXPECT_EQ(value_of(epoll->modify(*file, 5, event_of(EPOLLIN, 7)).error()), ENOENT);
  EXPECT_EQ(ready_of(*epoll), Data{8});
}

TEST(Epoll, ClosedFilesGo) {
  HostedKernel kernel;
  const std::uint64_t before = heap_bytes_used();
  Ref<Epoll> epoll = make_ref<Epoll>();
  for (int fd = 0; fd < 100; ++fd) {
    Ref<File> file = make_event(1);
    ASSERT_TRUE(epoll->add(file, fd, event_of(EPOLLIN, 7)));
  }
  EXPECT_EQ(ready_of(*epoll), Data{});
  Ref<File> kept = make_event(1);
  ASSERT_TRUE(epoll->add(kept, 5, event_of(EPOLLIN, 9)));
  epoll = {};
  add_to(*kept, 1);
  kept = {};
  EXPECT_EQ(heap_bytes_used(), before);
}

TEST(Epoll, TellsManyInTurn) {
  HostedKernel kernel;
  Ref<Epoll> epoll = make_ref<Epoll>();
  std::vector<Ref<File>> files;
  for (int fd = 0; fd < 4; ++fd) {
    files.push_back(make_event(1));
    ASSERT_TRUE(epoll->add(files.back(), fd, event_of(EPOLLIN, static_cast<std::uint64_t>(fd))));
  }
  EXPECT_EQ(ready_of(*epoll, 0, 3), (Data{0, 1, 2}));
  EXPECT_EQ(ready_of(*epoll, 0, 3), (Data{3, 0, 1}));
}

TEST(Epoll, WatchesOthersButNoLoopsAndNotTooDeep) {
  HostedKernel kernel;
  std::vector<Ref<Epoll>> chain;
  for (int i = 0; i < 7; ++i) chain.push_back(make_ref<Epoll>());
  for (std::size_t i = 0; i < 5; ++i) ASSERT_TRUE(chain[i]->add(chain[i + 1], 3, event_of(EPOLLIN, i)));
  EXPECT_EQ(value_of(chain[5]->add(chain[0], 3, event_of(EPOLLIN, 1)).error()), ELOOP);
  EXPECT_EQ(value_of(chain[5]->add(chain[6], 3, event_of(EPOLLIN, 1)).error()), ELOOP);
  Ref<File> file = make_event(0);
  ASSERT_TRUE(chain[5]->add(file, 9, event_of(EPOLLIN, 1)));
  EXPECT_EQ(ready_of(*chain[0]), Data{});
  add_to(*file, 1);
  EXPECT_EQ(ready_of(*chain[0]), Data{0});
  take_from(*file);
  EXPECT_EQ(ready_of(*chain[0]), Data{});
}

TEST(Epoll, WakesThreadsThatWait) {
  HostedKernel kernel;
  Ref<Epoll> epoll = make_ref<Epoll>();
  Ref<File> file = make_event(0);
  ASSERT_TRUE(epoll->add(file, 5, event_of(EPOLLIN | EPOLLET, 7)));
  constexpr int kRounds = 2000;
  std::atomic<int> told = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      HostedThread thread(kernel);
      while (told.load() < kRounds) {
        if (!ready_of(*epoll, deadline_after(10'000'000)).empty()) told.fetch_add(static_cast<int>(take_from(*file)));
      }
    });
  }
  for (int i = 0; i < kRounds; ++i) add_to(*file, 1);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told.load(), kRounds);
}

TEST(Epoll, FilesMayGoWhileThreadsWait) {
  HostedKernel kernel;
  Ref<Epoll> epoll = make_ref<Epoll>();
  std::atomic<bool> is_over = false;
  std::thread waiter([&] {
    HostedThread thread(kernel);
    while (!is_over.load()) ready_of(*epoll, deadline_after(1'000'000));
  });
  for (int round = 0; round < 2000; ++round) {
    Ref<File> file = make_event(0);
    ASSERT_TRUE(epoll->add(file, 5, event_of(EPOLLIN, 7)));
    add_to(*file, 1);
  }
  is_over = true;
  waiter.join();
  EXPECT_EQ(ready_of(*epoll), Data{});
}

}  // namespace
}  // namespace belljar::kernel
