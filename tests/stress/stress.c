// stress SECONDS SEED [FIRST]: rounds of 4 processes with 4 threads each that do random work on files, pipes, sockets,
// signals, memory and children, and check what they can of it. What a round leaves must be what it found: no file,
// process, descriptor, and, on the user-space kernel, no object of its arena (/proc/belljar/arena). Before it comes a
// round of FIRST seconds, which makes what is made once and stays.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// kTimesLeast: how often each thread does each kind of work, however late it is: a round on a busy machine may be over
// before any thread has run.
enum { kProcesses = 4, kThreads = 4, kMessage = 64, kMemory = 64 << 10, kTimesLeast = 4 };

static char folder[64];
static double deadline;
static int shared_pipe[2];
static atomic_long queued_sent, queued_seen, plain_seen;

#define CHECK(condition)                                                                                         \
  do {                                                                                                           \
    if (!(condition)) {                                                                                          \
      fprintf(stderr, "stress: %s:%d: %s does not hold (errno %d, %s)\n", __func__, __LINE__, #condition, errno, \
              strerror(errno));                                                                                  \
      abort();                                                                                                   \
    }                                                                                                            \
  } while (0)

typedef struct {
  uint64_t random;
  int process, thread;
} Worker;

static unsigned below(Worker* worker, unsigned end) {
  worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(worker->random >> 33) % end;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void own_name(const Worker* worker, char* to, const char* suffix) {
  sprintf(to, "%s/own%d.%d%s", folder, worker->process, worker->thread, suffix);
}

// A file that only this thread knows: what was written is read, through every way.
static void own_file(Worker* worker) {
  static _Thread_local char written[kMemory], read_back[kMemory];
  char name[100], other[100];
  own_name(worker, name, "");
  own_name(worker, other, "x");
  const int fd = open(name, O_CREAT | O_RDWR | O_EXCL, 0600);
  CHECK(fd >= 0);
  const size_t size = 1 + below(worker, sizeof written), offset = below(worker, 10000);
  memset(written, (int)below(worker, 256), size);
  CHECK(pwrite(fd, written, size, (off_t)offset) == (ssize_t)size);
  CHECK(rename(name, other) == 0);
  CHECK(pread(fd, read_back, size, (off_t)offset) == (ssize_t)size && memcmp(written, read_back, size) == 0);
  const int is_shared = (int)below(worker, 2);
  char* const mapped = mmap(0, offset + size, PROT_READ | PROT_WRITE, is_shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
  CHECK(mapped != MAP_FAILED && memcmp(mapped + offset, written, size) == 0);
  mapped[offset] ^= 1;
  CHECK(pread(fd, read_back, 1, (off_t)offset) == 1 && (read_back[0] == mapped[offset]) == is_shared);
  CHECK(munmap(mapped, offset + size) == 0);
  const size_t cut = below(worker, (unsigned)(offset + size));
  CHECK(ftruncate(fd, (off_t)cut) == 0 && ftruncate(fd, (off_t)(cut + 100)) == 0);
  CHECK(pread(fd, read_back, 100, (off_t)cut) == 100);
  for (int i = 0; i < 100; ++i) CHECK(read_back[i] == 0);
  CHECK(unlink(other) == 0 && close(fd) == 0);
}

// Names that all threads fight for: calls may fail, and leave no trace.
static void shared_names(Worker* worker) {
  char one[100], other[100];
  sprintf(one, "%s/s/%c", folder, 'a' + (int)below(worker, 4));
  sprintf(other, "%s/s/%c", folder, 'a' + (int)below(worker, 4));
  struct stat status;
  switch (below(worker, 8)) {
    case 0:
      mkdir(one, 0700);
      break;
    case 1:
      rename(one, other);
      break;
    case 2:
      link(one, other);
      break;
    case 3:
      symlink(other, one);
      break;
    case 4:
      rmdir(one);
      break;
    case 5:
      stat(one, &status);
      break;
    case 6:
      unlink(one);
      break;
    default: {
      const int fd = open(one, O_CREAT | O_RDWR, 0600);
      if (fd < 0) return;
      if (write(fd, one, sizeof one) > 0 && below(worker, 2)) ftruncate(fd, below(worker, 100000));
      close(fd);
    }
  }
}

// Messages of at most PIPE_BUF bytes stay whole, whoever writes and reads.
static void pipe_messages(Worker* worker) {
  char message[kMessage];
  if (below(worker, 2)) {
    memset(message, (int)below(worker, 256), sizeof message);
    const ssize_t count = write(shared_pipe[1], message, sizeof message);
    CHECK(count == sizeof message || (count < 0 && (errno == EAGAIN || errno == EINTR)));
    return;
  }
  const ssize_t count = read(shared_pipe[0], message, sizeof message);
  CHECK(count == sizeof message || (count < 0 && (errno == EAGAIN || errno == EINTR)));
  for (int i = 1; count > 0 && i < kMessage; ++i) CHECK(message[i] == message[0]);
}

static void own_pipe(Worker* worker) {
  static _Thread_local char bytes[kMemory], seen[kMemory];
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC | (below(worker, 2) ? O_NONBLOCK : 0)) == 0);
  const size_t size = 1 + below(worker, sizeof bytes);
  memset(bytes, (int)below(worker, 256), size);
  size_t written = 0, taken = 0;
  while (written < size) {
    const ssize_t count = write(ends[1], bytes + written, size - written);
    CHECK(count > 0 || errno == EINTR || errno == EAGAIN);
    if (count > 0) written += (size_t)count;
  }
  while (taken < size) {
    const ssize_t count = read(ends[0], seen + taken, size - taken);
    CHECK(count > 0 || errno == EINTR);
    if (count > 0) taken += (size_t)count;
  }
  CHECK(memcmp(bytes, seen, size) == 0);
  close(ends[0]);
  close(ends[1]);
}

// A descriptor goes through a socket and is the same file then.
static void passed_descriptor(Worker* worker) {
  int pair[2];
  CHECK(socketpair(AF_UNIX, below(worker, 2) ? SOCK_STREAM : SOCK_DGRAM, 0, pair) == 0);
  const int event = eventfd(below(worker, 1000), EFD_CLOEXEC);
  char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
  struct iovec area = {&byte, 1};
  struct msghdr message = {.msg_iov = &area, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &event, sizeof event);
  CHECK(sendmsg(pair[0], &message, 0) == 1);
  if (below(worker, 4) != 0) {  // else it stays under way, and goes with the socket
    ssize_t count;
    while ((count = recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
    CHECK(count == 1 && CMSG_FIRSTHDR(&message) != 0);
    int received;
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    CHECK(eventfd_write(received, 5) == 0);
    eventfd_t value;
    CHECK(eventfd_read(event, &value) == 0 && value >= 5);
    close(received);
  }
  close(event);
  close(pair[0]);
  close(pair[1]);
}

static void readiness(Worker* worker) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  const int event = eventfd(1, EFD_CLOEXEC);
  struct epoll_event wanted = {.events = EPOLLIN, .data.fd = timer}, ready[2];
  struct itimerspec soon = {.it_value.tv_nsec = 1 + below(worker, 2000000)};
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &wanted) == 0);
  wanted.data.fd = event;
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted) == 0);
  CHECK(timerfd_settime(timer, 0, &soon, 0) == 0);
  const int count = epoll_wait(epoll, ready, 2, (int)below(worker, 3));
  CHECK(count >= 1 || errno == EINTR);
  close(epoll);
  close(event);
  close(timer);
}

static void memory(Worker* worker) {
  const size_t pages = 2 + below(worker, 30), size = pages * 4096;
  unsigned char* at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  const int value = (int)below(worker, 256);
  memset(at, value, size);
  CHECK(mprotect(at, 4096, PROT_READ) == 0 && at[0] == value);
  CHECK(munmap(at + 4096 * (pages / 2), 4096) == 0);
  CHECK(munmap(at + 4096 * (pages / 2 + 1), size - 4096 * (pages / 2 + 1)) == 0 || pages / 2 + 1 == pages);
  at = mremap(at, 4096, 3 * 4096, MREMAP_MAYMOVE);
  CHECK(at != MAP_FAILED && at[4095] == value && at[0] == value);
  CHECK(munmap(at, 3 * 4096) == 0);
}

// A child sees memory as it was, shares what is shared, and tells its own status.
static void child(Worker* worker) {
  int* const shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  const int code = 1 + (int)below(worker, 100), way = (int)below(worker, 8);
  int private = code;
  const pid_t pid = fork();
  if (pid == 0) {
    if (private != code) _exit(0);
    private = *shared = code;
    if (way == 0) execl("/proc/self/exe", "stress", "exit", "7", (char*)0);
    if (way == 1) raise(SIGKILL);
    if (way == 2) pause();
    _exit(code);
  }
  CHECK(pid > 0);
  if (way == 2) CHECK(kill(pid, SIGTERM) == 0);
  int status = 0;
  pid_t waited;
  while ((waited = waitpid(pid, &status, 0)) < 0 && errno == EINTR) continue;
  CHECK(waited == pid);
  if (way == 0) CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  if (way == 1) CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  if (way == 2) CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  if (way > 2) CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
  CHECK(way == 2 || *shared == code);
  CHECK(munmap(shared, 4096) == 0);
}

static void on_queued(int signal) {
  (void)signal;
  ++queued_seen;
}
static void on_plain(int signal) {
  (void)signal;
  ++plain_seen;
}

static void signals(Worker* worker) {
  switch (below(worker, 4)) {
    case 0:
      // Queued signals come as often as they were sent.
      if (sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0) ++queued_sent;
      break;
    case 1:
      CHECK(kill(getpid(), SIGUSR1) == 0);
      break;
    case 2:
      CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
      break;
    default: {
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, SIGUSR2);
      pthread_sigmask(SIG_BLOCK, &one, 0);
      CHECK(pthread_kill(pthread_self(), SIGUSR2) == 0);
      CHECK(sigwaitinfo(&one, 0) == SIGUSR2 || errno == EINTR);
      struct timespec none = {0, 0};
      sigtimedwait(&one, 0, &none);
      pthread_sigmask(SIG_UNBLOCK, &one, 0);
    }
  }
}

static void* count_one(void* counter) {
  ++*(atomic_int*)counter;
  return 0;
}

static void threads(Worker* worker) {
  atomic_int counter = 0;
  pthread_t made[3];
  const unsigned count = 1 + below(worker, 3);
  for (unsigned i = 0; i < count; ++i) CHECK(pthread_create(&made[i], 0, count_one, &counter) == 0);
  for (unsigned i = 0; i < count; ++i) CHECK(pthread_join(made[i], 0) == 0);
  CHECK(counter == (int)count);
}

static void* work(void* argument) {
  static void (*const kWorks[])(Worker*) = {own_file, shared_names,      shared_names, pipe_messages, pipe_messages,
                                            own_pipe, passed_descriptor, readiness,    memory,        child,
                                            signals,  signals,           threads};
  enum { kCount = sizeof kWorks / sizeof *kWorks };
  Worker* const worker = argument;
  for (int i = 0; i < kTimesLeast * kCount; ++i) kWorks[i % kCount](worker);
  while (now() < deadline) kWorks[below(worker, kCount)](worker);
  return 0;
}

static void set_handlers(void) {
  struct sigaction action = {.sa_handler = on_plain, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, 0);
  sigaction(SIGUSR2, &action, 0);
  action.sa_handler = on_queued;
  sigaction(SIGRTMIN, &action, 0);
}

static void run_process(int process, uint64_t seed) {
  Worker workers[kThreads];
  pthread_t made[kThreads];
  set_handlers();
  for (int i = 0; i < kThreads; ++i) {
    workers[i] = (Worker){seed * 1000003 + (uint64_t)(process * kThreads + i), process, i};
    CHECK(pthread_create(&made[i], 0, work, &workers[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(made[i], 0) == 0);
  for (int waits = 0; queued_seen != queued_sent && waits < 1000; ++waits) usleep(1000);
  CHECK(queued_seen == queued_sent);
  CHECK(waitpid(-1, 0, WNOHANG) < 0 && errno == ECHILD);
  _exit(0);
}

static void clear_shared(void) {
  char path[400];
  sprintf(path, "%s/s", folder);
  DIR* const stream = opendir(path);
  CHECK(stream != 0);
  for (struct dirent* entry; (entry = readdir(stream)) != 0;) {
    snprintf(path, sizeof path, "%s/s/%s", folder, entry->d_name);
    if (entry->d_name[0] != '.') CHECK(remove(path) == 0);
  }
  closedir(stream);
  sprintf(path, "%s/s", folder);
  CHECK(rmdir(path) == 0);
}

static void run_round(double seconds, uint64_t seed) {
  char path[100];
  strcpy(folder, "/tmp/stress.XXXXXX");
  CHECK(mkdtemp(folder) != 0);
  sprintf(path, "%s/s", folder);
  CHECK(mkdir(path, 0700) == 0 && pipe2(shared_pipe, O_CLOEXEC | O_NONBLOCK) == 0);
  deadline = now() + seconds;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) run_process(i, seed);
  }
  for (int i = 0; i < kProcesses; ++i) {
    int status = -1;
    CHECK(wait(&status) > 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  clear_shared();
  CHECK(rmdir(folder) == 0);
  close(shared_pipe[0]);
  close(shared_pipe[1]);
}

enum { kRowsMost = 64 };
typedef struct {
  struct {
    char name[32];
    long count;
  } rows[kRowsMost];
  int count;
} State;

// What must be the same after a round. The kernel's file has lines of a name and a count.
static void look(State* state) {
  struct statvfs space;
  CHECK(statvfs("/tmp", &space) == 0);
  state->count = 0;
  FILE* const file = fopen("/proc/belljar/arena", "r");
  if (file == 0) return;
  while (state->count < kRowsMost - 2 &&
         fscanf(file, "%31s %ld", state->rows[state->count].name, &state->rows[state->count].count) == 2) {
    ++state->count;
  }
  fclose(file);
  strcpy(state->rows[state->count].name, "blocks-free");
  state->rows[state->count++].count = (long)space.f_bfree;
  strcpy(state->rows[state->count].name, "inodes-free");
  state->rows[state->count++].count = (long)space.f_ffree;
}

static int compare(const State* before, const State* after) {
  int differences = before->count != after->count;
  for (int i = 0; i < after->count && i < before->count; ++i) {
    if (before->rows[i].count == after->rows[i].count) continue;
    printf("LEFT %s: %ld before, %ld after\n", after->rows[i].name, before->rows[i].count, after->rows[i].count);
    ++differences;
  }
  return differences;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "exit") == 0) return atoi(argv[2]);
  const double seconds = atof(argv[1]);
  const uint64_t seed = strtoull(argv[2], 0, 10);
  const double first_seconds = argc > 3 ? atof(argv[3]) : seconds / 5 < 3 ? seconds / 5 : 3;
  static State before, after;
  printf("seed %llu\n", (unsigned long long)seed);
  run_round(first_seconds, seed + 1);  // until caches are as full as they get
  look(&before);
  run_round(seconds, seed);
  look(&after);
  if (compare(&before, &after) != 0) return 1;
  printf("%d kinds of objects, none left\n", after.count);
  return 0;
}
