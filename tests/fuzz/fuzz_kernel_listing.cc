// Any bytes as the broker's listing of a folder, as the user-space kernel reads it: nothing outside of the listing is
// read, and what getdents64(2) tells of is found by its name.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernel/base/hosted.h"
#include "kernel/broker/listing.h"
#include "kernel/fs/mount_tree.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {
namespace {

// The listing ends where memory that can't be read begins.
class GuardedBytes {
 public:
  GuardedBytes(const std::uint8_t* data, std::size_t size) : room_(page_up(size) + kPageSize) {
    mapped_ = static_cast<char*>(::mmap(nullptr, room_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(mapped_ + room_ - kPageSize, kPageSize, PROT_NONE);
    begin_ = mapped_ + room_ - kPageSize - size;
    if (size > 0) std::memcpy(begin_, data, size);
  }
  ~GuardedBytes() { ::munmap(mapped_, room_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  const char* begin() const { return begin_; }

 private:
  std::size_t room_;
  char* mapped_;
  char* begin_;
};

class ListedTree final : public HostTree {
 public:
  ListedTree(const std::uint8_t* data, std::size_t size) : bytes_(data, size), size_(size) {}
  // Nothing is there by name: names come of the listing alone.
  SysResult<Facts> stat(std::string_view path) override {
    if (!path.empty()) return error(ENOENT);
    Facts facts;
    facts.mode = S_IFDIR | 0755;
    return facts;
  }
  SysResult<void> list(std::string_view path, Visit visit, void* context) override {
    return path.empty() ? read_listing(bytes_.begin(), size_, visit, context) : error(EACCES);
  }
  // Names that programs can give, each with the number of the last that is listed.
  std::map<std::string, std::uint64_t> ordinary_names() const {
    std::map<std::string, std::uint64_t> names;
    const Visit note = [](void* context, std::string_view name, const Facts& facts) {
      const bool is_ordinary = !name.empty() && name.size() <= kNameMax && name.find('/') == name.npos &&
                               name.find('\0') == name.npos && name != "." && name != "..";
      if (is_ordinary) (*static_cast<decltype(names)*>(context))[std::string(name)] = facts.number;
    };
    if (!read_listing(bytes_.begin(), size_, note, &names)) names.clear();  // a broken one is not read at all
    return names;
  }
  SysResult<std::size_t> read_link(std::string_view, char*, std::size_t) override { return error(EIO); }
  SysResult<Content> fetch(std::string_view, Wanted) override { return error(EIO); }
  SysResult<std::uint64_t> read(std::string_view, std::uint64_t, Buffers&) override { return error(EIO); }
  SysResult<std::size_t> read_live(std::string_view, std::uint64_t, char*, std::size_t) override { return error(EIO); }

 private:
  GuardedBytes bytes_;
  std::size_t size_;
};

template <typename... Values>
long call(SyscallFunction function, Values... values) {
  const SyscallResult result = function(SyscallArguments{{static_cast<std::uint64_t>(values)...}});
  return result ? static_cast<long>(*result) : -value_of(result.error());
}
std::uint64_t word(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

void check_folder(const ListedTree& tree, std::size_t block_size) {
  const long fd = call(sys_open, word("/"), O_DIRECTORY, 0);
  if (fd < 0) std::abort();
  std::vector<char> block(block_size);
  std::set<std::string> names;
  long size = 0;
  while ((size = call(sys_getdents64, fd, word(block.data()), block.size())) > 0) {
    for (long at = 0; at < size;) {
      const std::uint16_t length = *reinterpret_cast<std::uint16_t*>(block.data() + at + 16);
      if (length == 0 || at + length > size) std::abort();
      const char* const name = block.data() + at + 19;
      if (std::memchr(name, 0, static_cast<std::size_t>(length) - 19) == nullptr) std::abort();
      if (*name != '\0') names.insert(name);
      at += length;
    }
  }
  call(sys_close, fd);
  for (const auto& [name, number] : tree.ordinary_names()) {
    struct stat status{};
    const long result = call(sys_lstat, word(("/" + name).c_str()), word(&status));
    if (names.contains(name) && result == 0 && status.st_ino == number) continue;
    std::fprintf(stderr, "'%s' is listed: %d, found: %ld\n", name.c_str(), names.contains(name), result);
    std::abort();
  }
}

}  // namespace
}  // namespace belljar::kernel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar::kernel;
  if (size == 0) return 0;
  HostedKernel kernel;
  ListedTree tree(data + 1, size - 1);
  MountPlan plan;
  plan.root = &tree;
  plan.space = make_ref<TmpSpace>(1UL << 20, 100UL);
  auto places = mount_tree(plan);
  if (!places) std::abort();
  kernel.task().fs->places = *places;
  check_folder(tree, 300 + data[0] * 16U);
  places = Places{};
  plan.space = nullptr;
  kernel.task().files = nullptr;
  kernel.task().fs = nullptr;
  return 0;
}
