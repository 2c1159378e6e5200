// Hostile shared memory for the broker of the kernel tier. Requests: what it answers is what openat2(2) finds below the
// root without following a link, and none of the host kernel's own trees. Streams: whatever guests do to the counts, it
// reads and writes inside the rings, and comes to an end.
#include <fcntl.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "tiers/kernel/broker_files.h"
#include "tiers/kernel/broker_shared.h"
#include "tiers/kernel/broker_streams.h"

namespace belljar::broker {
namespace {

using kernel::shm::End;
using kernel::shm::Operation;
using kernel::shm::Request;
using kernel::shm::Stream;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// A folder of the host's with links that lead out of it; not below /tmp, which the broker does not show.
struct Tree {
  std::string folder;
  Tree() {
    char name[] = "/var/tmp/fuzz-broker-XXXXXX";
    if (::mkdtemp(name) == nullptr) fail("no folder in /var/tmp");
    folder = name;
    for (const char* below : {"/a", "/a/b"}) ::mkdir((folder + below).c_str(), 0755);
    std::ofstream(folder + "/a/f") << "contents";
    std::ofstream(folder + "/empty");
    ::mkfifo((folder + "/fifo").c_str(), 0600);
    for (const auto& [target, link] : {std::pair{"/etc", "out"}, {"..", "a/up"}, {"a/f", "l"}, {"/proc/self", "proc"}})
      (void)::symlink(target, (folder + "/" + link).c_str());
  }
  ~Tree() { std::filesystem::remove_all(folder); }
};

// The descriptors that the broker is started with, and what it maps of them; the end of the request is the end of
// memory that can be reached.
struct Broker {
  Tree tree;
  Shared shared;
  content_cache::Keeper keeper;  // not started: nothing is kept
  Files files;
  Request* request = nullptr;
  int seen_output = -1;

  Broker() {
    take_fd(kArenaFd, kernel::kRingsSize);
    take_fd(kContentFd, kernel::kContentSize);
    if (!shared.map()) fail("no memory to share");
    shared.area().boot.memory_bytes = 4U << 20;  // a part of it for copies
    if (!files.open(keeper, shared.area().boot)) fail("the broker can't start");
    const std::size_t room = kernel::page_up(sizeof(Request));
    auto* const mapped = static_cast<char*>(
        ::mmap(nullptr, room + kernel::kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(mapped + room, kernel::kPageSize, PROT_NONE);
    request = reinterpret_cast<Request*>(mapped + room - sizeof(Request));
  }
  static void take_fd(int wanted, std::uint64_t size) {
    const int fd = ::memfd_create("broker", 0);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(size)) != 0 || ::dup2(fd, wanted) != wanted)
      fail("no memory file");
    if (fd != wanted) ::close(fd);
  }
};

std::string path_of(FuzzedDataProvider& input, const Tree& tree) {
  static const std::string kWords[] = {"a",    "b",   "f", "l",    "up",  "out",
                                       "proc", "..",  ".", "fifo", "tmp", "cpuinfo",
                                       "etc",  "dev", "/", "//",   "",    std::string(300, 'n')};
  std::string path = input.ConsumeBool() ? tree.folder.substr(1) : "";
  for (int words = input.ConsumeIntegralInRange(0, 8); words > 0; --words) {
    if (!path.empty() && input.ConsumeBool()) path += '/';
    path += input.PickValueInArray(kWords);
  }
  return path + input.ConsumeRandomLengthString(8);
}

// What the host's kernel finds, without following links; -1: nothing.
int find_natively(const char* path) {
  const open_how how{O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
  const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int found = static_cast<int>(::syscall(SYS_openat2, root, *path == '\0' ? "." : path, &how, sizeof how));
  ::close(root);
  return found;
}

void check_answer(const Broker& broker, Operation operation, const char* path) {
  const Request& request = *broker.request;
  if (request.state.load() != Request::kDone) fail("no answer");
  if (request.result < 0 || operation == Operation::read_live) return;
  const std::string first = std::string(path).substr(0, std::string(path).find('/'));
  for (const char* hidden : {"proc", "sys", "dev", "tmp"}) {
    if (first == hidden && first != path) fail("a name of the host kernel's own trees");
  }
  const int found = find_natively(path);
  struct stat status{};
  if (found < 0 || ::fstat(found, &status) != 0) fail("an answer about what is not there without following links");
  ::close(found);
  if (operation == Operation::stat && request.facts.number != status.st_ino) fail("facts of another file");
  if (operation == Operation::read_link && !S_ISLNK(status.st_mode)) fail("the target of what is no link");
  if (operation == Operation::list && !S_ISDIR(status.st_mode)) fail("names of what is no folder");
  if (operation == Operation::fetch && !S_ISREG(status.st_mode)) fail("contents of what is no file");
  if (operation == Operation::read && (!S_ISREG(status.st_mode) || request.result > Request::kDataSize)) {
    fail("more than was asked, or of what is no file");
  }
  if (operation != Operation::list && operation != Operation::fetch) return;
  if (request.result == kernel::shm::kInParts) return;
  if (request.offset < kernel::kPageSize || request.offset % kernel::kPageSize != 0 ||
      request.size > kernel::kContentSize)
    fail("contents outside of the content file");
}

void ask(FuzzedDataProvider& input, Broker& broker) {
  Request& request = *broker.request;
  const auto operation = static_cast<Operation>(input.ConsumeIntegralInRange(0U, 10U));
  const std::string path = path_of(input, broker.tree);
  std::memset(static_cast<void*>(&request), input.ConsumeIntegral<std::uint8_t>(), sizeof request);
  request.operation = operation;
  for (std::uint64_t& argument : request.arguments) argument = input.ConsumeIntegral<std::uint64_t>();
  const std::size_t size = std::min<std::size_t>(path.size(), Request::kPathSize);
  std::memcpy(request.path, path.data(), size);
  if (input.ConsumeBool() && size < Request::kPathSize) request.path[size] = '\0';
  std::string seen(request.path, Request::kPathSize - 1);
  seen.resize(std::strlen(seen.c_str()));
  broker.files.answer(request);
  check_answer(broker, operation, seen.c_str());
}

std::uint32_t count_of(FuzzedDataProvider& input) {
  return input.PickValueInArray<std::uint32_t>(
             {0, 1, 100, Stream::kSize - 1, Stream::kSize, Stream::kSize + 1, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff}) +
         input.ConsumeIntegral<std::uint8_t>();
}

// A guest that changes counts while a thread of the broker's moves bytes, and then ends.
void move_streams(FuzzedDataProvider& input, const Shared& shared, kernel::shm::StreamIndex index) {
  kernel::shm::Shared& area = shared.area();
  std::memset(static_cast<void*>(&area.end), 0, sizeof area.end);
  Stream& stream = area.streams[index];
  stream.written = stream.taken = stream.is_ended = stream.taker_waits = stream.writer_waits = 0;
  Shared view = shared;
  std::atomic<bool> is_over = false;
  std::thread mover([&] {
    index == kernel::shm::kStdin ? carry_input(view) : carry_output(view, index);
    is_over = true;
  });
  for (int steps = input.ConsumeIntegralInRange(0, 20); steps > 0; --steps) {
    // Of what comes in `written` is for guests alone to read.
    const bool is_written = index != kernel::shm::kStdin && input.ConsumeBool();
    std::atomic<std::uint32_t>& word = is_written ? stream.written : stream.taken;
    word = count_of(input);
    (input.ConsumeBool() ? stream.taker_waits : stream.writer_waits) = 1;
    wake(word);
    if (input.ConsumeBool()) std::this_thread::yield();
  }
  area.end.kind = End::kExited;
  while (!is_over) {
    // An honest taker of what comes in; of what goes out nothing more is needed than to be woken.
    if (index == kernel::shm::kStdin) stream.taken = stream.written.load();
    wake(stream.taken);
    wake(stream.written);
    std::this_thread::yield();
  }
  mover.join();
}

}  // namespace
}  // namespace belljar::broker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar::broker;
  static Broker broker;
  FuzzedDataProvider input(data, size);
  while (input.remaining_bytes() > 0) {
    if (input.ConsumeIntegralInRange(0, 7) != 0) {
      ask(input, broker);
      continue;
    }
    // Streams of this process: an input of some bytes, an output that takes all.
    const int in = ::memfd_create("in", MFD_CLOEXEC), out = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (::ftruncate(in, input.ConsumeIntegralInRange(0, 200'000)) != 0) std::abort();
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::close(in);
    ::close(out);
    move_streams(input, broker.shared,
                 input.ConsumeBool() ? belljar::kernel::shm::kStdin : belljar::kernel::shm::kStdout);
  }
  return 0;
}
