// POSIX message queues, by their system calls.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <string>
#include <thread>

#include "kernel/arena/heap.h"
#include "kernel/base/hosted.h"
#include "kernel/ipc/message_queue.h"
#include "kernel/syscalls/call_hosted.h"

namespace belljar::kernel {
namespace {

struct Queues : testing::Test {
  HostedKernel kernel;

  Queues() {
    kernel.process().limits[RLIMIT_MSGQUEUE] = {819200, 819200};
    // What is made once, and stays: the table of names, that of descriptors, and what a thread sleeps by.
    const int queue = open("first", O_CREAT | O_RDWR);
    char text[16];
    const timespec past{1, 0};
    EXPECT_EQ(call(sys_mq_timedreceive, queue, text, sizeof text, nullptr, &past), -ETIMEDOUT);
    remove("first", queue);
  }
  static void remove(const char* name, int queue) {
    EXPECT_EQ(call(sys_mq_unlink, name), 0);
    EXPECT_TRUE(current().files->close(queue));
  }

  static int open(const char* name, int flags, long most = 4, long size_most = 16) {
    mq_attr attributes{};
    attributes.mq_maxmsg = most;
    attributes.mq_msgsize = size_most;
    return static_cast<int>(call(sys_mq_open, name, flags, 0600, &attributes));
  }
  static std::int64_t send(int queue, std::string_view text, unsigned priority = 0) {
    return call(sys_mq_timedsend, queue, text.data(), text.size(), priority, nullptr);
  }
  // "priority text", or the errno negated.
  static std::string receive(int queue) {
    std::array<char, 16> text{};
    unsigned priority = 0;
    const std::int64_t count = call(sys_mq_timedreceive, queue, text.data(), text.size(), &priority, nullptr);
    if (count < 0) return std::to_string(count);
    return std::to_string(priority) + ' ' + std::string(text.data(), static_cast<std::size_t>(count));
  }
  static short ready(int queue) { return static_cast<short>((*current().files->get(queue))->ready()); }
};

TEST_F(Queues, TheHighestPriorityComesFirstAndTheOldestOfIt) {
  const int queue = open("order", O_CREAT | O_RDWR | O_NONBLOCK);
  ASSERT_GE(queue, 0);
  EXPECT_EQ(ready(queue), POLLOUT | POLLWRNORM);
  EXPECT_EQ(send(queue, "a", 1), 0);
  EXPECT_EQ(send(queue, "b", 9), 0);
  EXPECT_EQ(send(queue, "c", 1), 0);
  EXPECT_EQ(send(queue, "d", 0), 0);
  EXPECT_EQ(ready(queue), POLLIN | POLLRDNORM);
  EXPECT_EQ(send(queue, "e", 0), -EAGAIN);
  EXPECT_EQ(receive(queue), "9 b");
  EXPECT_EQ(receive(queue), "1 a");
  EXPECT_EQ(receive(queue), "1 c");
  EXPECT_EQ(receive(queue), "0 d");
  EXPECT_EQ(receive(queue), std::to_string(-EAGAIN));
}

TEST_F(Queues, NamesAreKeptUntilTheyAreUnlinked) {
  const int queue = open("name", O_CREAT | O_EXCL | O_RDWR);
  EXPECT_EQ(open("name", O_CREAT | O_EXCL | O_RDWR), -EEXIST);
  EXPECT_EQ(open("name", O_RDWR | O_WRONLY), -EINVAL);
  EXPECT_EQ(open("", O_RDWR), -ENOENT);
  EXPECT_EQ(open("a/b", O_RDWR), -EACCES);
  EXPECT_EQ(open("..", O_RDWR | O_CREAT), -EACCES);
  EXPECT_EQ(open(std::string(256, 'n').c_str(), O_RDWR), -ENAMETOOLONG);
  kernel.task().credentials.fsuid = 7;
  EXPECT_EQ(open("name", O_RDONLY), -EACCES);
  EXPECT_EQ(call(sys_mq_unlink, "name"), -EPERM);
  kernel.task().credentials.fsuid = 0;
  EXPECT_EQ(call(sys_mq_unlink, "name"), 0);
  EXPECT_EQ(call(sys_mq_unlink, "name"), -ENOENT);
  EXPECT_EQ(send(queue, "still there"), 0);
  EXPECT_EQ(receive(queue), "0 still there");
}

TEST_F(Queues, AreChargedToTheSandboxUntilTheLastDescriptorGoes) {
  EXPECT_EQ(open("x", O_CREAT | O_RDWR, 11, 1), -EINVAL);
  EXPECT_EQ(open("x", O_CREAT | O_RDWR, 1, 8193), -EINVAL);
  EXPECT_EQ(open("x", O_CREAT | O_RDWR, 0, 1), -EINVAL);
  const std::uint64_t before = heap_bytes_used();
  std::array<int, 9> queues{};
  const auto name = [](std::size_t index) { return std::string("q") + std::to_string(index); };
  for (std::size_t i = 0; i < queues.size(); ++i) {
    queues[i] = open(name(i).c_str(), O_CREAT | O_RDWR, 10, 8192);
    ASSERT_GE(queues[i], 0);
    EXPECT_EQ(send(queues[i], std::string(8192, 'x')), 0);
  }
  EXPECT_EQ(open("tenth", O_CREAT | O_RDWR, 10, 8192), -EMFILE);
  for (std::size_t i = 0; i < queues.size(); ++i) EXPECT_EQ(call(sys_mq_unlink, name(i).c_str()), 0);
  EXPECT_EQ(open("tenth", O_CREAT | O_RDWR, 10, 8192), -EMFILE) << "those that are open count without their names";
  for (const int queue : queues) EXPECT_TRUE(current().files->close(queue));
  EXPECT_EQ(heap_bytes_used(), before);
  const int tenth = open("tenth", O_CREAT | O_RDWR, 10, 8192);
  EXPECT_GE(tenth, 0);
}

TEST_F(Queues, AtMostAsManyAsProcTells) {
  kernel.process().limits[RLIMIT_NOFILE] = {4096, 4096};
  for (std::uint32_t i = 0; i < kQueuesMax; ++i) {
    const int queue = open(std::to_string(i).c_str(), O_CREAT | O_RDWR, 1, 1);
    ASSERT_GE(queue, 0);
    EXPECT_TRUE(current().files->close(queue));
  }
  EXPECT_EQ(open("more", O_CREAT | O_RDWR, 1, 1), -ENOSPC);
}

TEST_F(Queues, ThreadsWaitForMessagesAndForRoom) {
  const std::uint64_t before = heap_bytes_used();
  const int queue = open("wait", O_CREAT | O_RDWR, 1, 16);
  constexpr int kCount = 2000;
  std::thread sender([&] {
    const HostedThread task(kernel);
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(send(queue, std::to_string(i)), 0);
  });
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(receive(queue), "0 " + std::to_string(i));
  sender.join();
  remove("wait", queue);
  EXPECT_EQ(heap_bytes_used(), before);
}

TEST_F(Queues, WaitingEndsWithItsTime) {
  const std::uint64_t before = heap_bytes_used();
  const int queue = open("late", O_CREAT | O_RDWR, 1, 16);
  timespec soon{};
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_nsec = (soon.tv_nsec + 2'000'000) % 1'000'000'000;
  char text[16];
  EXPECT_EQ(call(sys_mq_timedreceive, queue, text, sizeof text, nullptr, &soon), -ETIMEDOUT);
  EXPECT_EQ(send(queue, "full"), 0);
  EXPECT_EQ(call(sys_mq_timedsend, queue, "x", 1, 0, &soon), -ETIMEDOUT);
  soon.tv_nsec = -1;
  EXPECT_EQ(call(sys_mq_timedsend, queue, "x", 1, 0, &soon), -EINVAL);
  EXPECT_EQ(receive(queue), "0 full");
  EXPECT_EQ(send(queue, "next"), 0) << "who gave up waits no more";
  remove("late", queue);
  EXPECT_EQ(heap_bytes_used(), before);
}

TEST_F(Queues, OneProcessIsToldOnceOfAMessage) {
  const int queue = open("notice", O_CREAT | O_RDWR);
  MessageQueue& object = **message_queue_of(**current().files->get(queue));
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD;
  std::array<char, 32> cookie{};
  event.sigev_value.sival_ptr = cookie.data();
  event.sigev_signo = -1;
  EXPECT_EQ(call(sys_mq_notify, queue, &event), -EBADF);
  event.sigev_signo = queue;
  EXPECT_EQ(call(sys_mq_notify, queue, &event), -ENOTSOCK);
  event.sigev_notify = SIGEV_NONE;
  EXPECT_EQ(call(sys_mq_notify, queue, &event), 0);
  EXPECT_EQ(call(sys_mq_notify, queue, &event), -EBUSY);
  EXPECT_EQ(call(sys_mq_notify, queue, nullptr), 0);
  EXPECT_EQ(object.state().notice.owner, 0);
  EXPECT_EQ(call(sys_mq_notify, queue, &event), 0);
  EXPECT_EQ(send(queue, "1"), 0);
  EXPECT_EQ(object.state().notice.owner, 0) << "told";
  EXPECT_EQ(call(sys_mq_notify, queue, &event), 0);
  EXPECT_EQ(send(queue, "2"), 0);
  EXPECT_NE(object.state().notice.owner, 0) << "the queue was not empty";
  const int other = open("notice", O_RDWR);
  EXPECT_TRUE(current().files->close(other));
  EXPECT_EQ(object.state().notice.owner, 0) << "closing any of the process's descriptors takes it back";
}

}  // namespace
}  // namespace belljar::kernel
