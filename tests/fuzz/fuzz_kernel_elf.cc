// Any bytes as an ELF file for the user-space kernel's loader: what it maps lies inside the place that it took first,
// and what it loaded is what the file's parts say.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "kernel/arena/layout.h"
#include "kernel/base/hosted.h"
#include "kernel/mm/address_space.h"
#include "kernel/mm/text_cache.h"
#include "kernel/task/elf.h"

namespace belljar::kernel {
namespace {

// Programs at fixed addresses are let in where this process has nothing.
constexpr std::uint64_t kFixedBegin = 0x3e'0000;
constexpr std::uint64_t kFixedEnd = 0x4e'0000;
constexpr std::uint64_t kRoomMost = kFixedEnd - kFixedBegin;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

class BytesFile final : public File {
 public:
  explicit BytesFile(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position) override {
    if (*position >= bytes_.size()) return 0ULL;
    const std::uint64_t count = std::min<std::uint64_t>(to.left(), bytes_.size() - *position);
    TRY_VOID(to.put(bytes_.data() + *position, count));
    *position += count;
    return count;
  }
  SysResult<MapSource> map(std::uint64_t, std::uint64_t, bool, bool) override { return MapSource{}; }
  // What the file has of a range.
  std::span<const std::uint8_t> from(std::uint64_t offset, std::uint64_t size) const {
    if (offset >= bytes_.size()) return {};
    return bytes_.subspan(offset, std::min<std::uint64_t>(size, bytes_.size() - offset));
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

// The one place that a load took, of this process's own memory.
struct Room {
  std::uint64_t begin = 0, end = 0;
  bool is_fixed = false;
};
Room room;

SysResult<std::uint64_t> take_room(const MapRequest& request) {
  room.is_fixed = (request.flags & MAP_FIXED_NOREPLACE) != 0;
  // At a fixed address only what goes before the program is asked for: take all there is, as an empty process has it.
  const std::uint64_t address = room.is_fixed ? kFixedBegin : 0;
  const std::uint64_t size = room.is_fixed ? kFixedEnd - kFixedBegin : page_up(request.size);
  if (room.is_fixed && (request.address < kFixedBegin || request.address > kFixedEnd - request.size))
    return error(ENOMEM);
  if (size > kRoomMost && !room.is_fixed) return error(ENOMEM);
  void* const mapped =
      ::mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (room.is_fixed ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  if (mapped == MAP_FAILED) fail("no room for the program in this process");
  room.begin = reinterpret_cast<std::uint64_t>(mapped);
  room.end = room.begin + size;
  return room.is_fixed ? request.address : room.begin;
}

}  // namespace

// What stands for the address space.
SysResult<std::uint64_t> map_memory(const MapRequest& request) {
  if ((request.address & (kPageSize - 1)) != 0 || (request.offset & (kPageSize - 1)) != 0) fail("not whole pages");
  if (request.size == 0 || page_up(request.size) < request.size) return error(EINVAL);
  if (room.end == 0) return take_room(request);
  if ((request.flags & MAP_FIXED) == 0) fail("a part without a place");
  const std::uint64_t end = request.address + page_up(request.size);
  if (request.address < room.begin || end > room.end || end < request.address) {
    if (room.is_fixed) return error(ENOMEM);  // beyond what this process has free
    fail("a part outside of the room that was taken");
  }
  auto* const to = reinterpret_cast<std::uint8_t*>(request.address);
  std::memset(to, 0, page_up(request.size));
  if (request.file != nullptr) {
    const auto& file = static_cast<const BytesFile&>(*request.file);
    const std::span<const std::uint8_t> bytes = file.from(request.offset, page_up(request.size));
    std::copy(bytes.begin(), bytes.end(), to);
  }
  return request.address;
}
void note_image(std::uint64_t, std::uint64_t, std::uint64_t) {}

namespace {

void check_loaded(const BytesFile& file, const ElfPlan& plan, const LoadedElf& loaded) {
  if (loaded.end != loaded.base + plan.high) fail("the end is not where the last part ends");
  std::uint64_t before = 0;
  for (int i = 0; i < plan.header.e_phnum; ++i) {
    const Elf64_Phdr& part = plan.parts[i];
    if (part.p_type != PT_LOAD || part.p_memsz == 0) continue;
    if (page_down(part.p_vaddr) < before) return;  // parts over one another
    before = page_up(part.p_vaddr + part.p_memsz);
  }
  for (int i = 0; i < plan.header.e_phnum; ++i) {
    const Elf64_Phdr& part = plan.parts[i];
    if (part.p_type != PT_LOAD || part.p_memsz == 0) continue;
    const auto* const memory = reinterpret_cast<const std::uint8_t*>(loaded.base + part.p_vaddr);
    const std::span<const std::uint8_t> bytes = file.from(part.p_offset, part.p_filesz);
    if (!std::equal(bytes.begin(), bytes.end(), memory)) fail("a part is not what the file has");
    // Behind it is nothing, but in read-only parts, where programs that work have no such memory.
    const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
    const std::uint64_t zero_from = (part.p_flags & PF_W) != 0 ? bytes.size() : part.p_memsz;
    if (!std::all_of(memory + zero_from, memory + part.p_memsz, is_zero)) fail("memory of a part is not zero");
  }
}

}  // namespace
}  // namespace belljar::kernel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar::kernel;
  static HostedKernel kernel;
  BytesFile file({data, size});
  ElfPlan plan{};
  room = {};
  if (!read_elf(file, &plan)) return 0;
  if (plan.low >= plan.high || plan.high > kGuestEnd + kPageSize) fail("a program of no size");
  if (plan.has_interpreter && std::memchr(plan.interpreter, 0, sizeof plan.interpreter) == nullptr) fail("no end");
  const auto loaded = load_elf(file, plan, 0);
  if (loaded) check_loaded(file, plan, *loaded);
  if (room.end != 0) ::munmap(reinterpret_cast<void*>(room.begin), room.end - room.begin);
  return 0;
}
