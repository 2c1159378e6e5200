#include "kernel/host/vdso.h"

#include <elf.h>
#include <sys/syscall.h>
#include <time.h>

#include <string_view>

#include "kernel/arena/layout.h"
#include "kernel/host/calls.h"
#include "kernel/host/raw.h"

namespace belljar::kernel::host {
namespace {

using ClockFunction = int (*)(int clock, timespec* now);

// The pages of data that the kernel maps below the vDSO (arch/x86: at most 4 before Linux 6.13, 6 since).
constexpr std::uint64_t kDataPagesMost = 8;

ClockFunction clock_function = nullptr;
VdsoRange range;

// The address of a symbol of the vDSO's dynamic table; 0: it has none of that name.
std::uint64_t find_symbol(const Elf64_Dyn* dynamic, std::uint64_t bias, std::string_view wanted) {
  const Elf64_Sym* symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const std::uint64_t address = dynamic->d_un.d_ptr + bias;
    if (dynamic->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(address);
    if (dynamic->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
    if (dynamic->d_tag == DT_HASH) hash = reinterpret_cast<const std::uint32_t*>(address);
  }
  if (symbols == nullptr || names == nullptr || hash == nullptr) return 0;
  for (std::uint32_t i = 0; i < hash[1]; ++i) {
    if (symbols[i].st_shndx != SHN_UNDEF && names + symbols[i].st_name == wanted) return symbols[i].st_value + bias;
  }
  return 0;
}

}  // namespace

void find_vdso(std::uint64_t address) {
  if (address == 0) return;
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(address);
  const auto* const parts = reinterpret_cast<const Elf64_Phdr*>(address + header->e_phoff);
  std::uint64_t bias = 0;
  std::uint64_t size = 0;
  const Elf64_Phdr* dynamic = nullptr;
  for (int i = 0; i < header->e_phnum; ++i) {
    if (parts[i].p_type == PT_LOAD) {
      bias = address + parts[i].p_offset - parts[i].p_vaddr;
      size = parts[i].p_memsz;
    }
    if (parts[i].p_type == PT_DYNAMIC) dynamic = &parts[i];
  }
  range = {address - kDataPagesMost * kPageSize, page_up(address + size), address};
  if (dynamic == nullptr) return;
  const auto* const entries = reinterpret_cast<const Elf64_Dyn*>(address + dynamic->p_offset);
  clock_function = reinterpret_cast<ClockFunction>(find_symbol(entries, bias, "__vdso_clock_gettime"));
}

const VdsoRange& vdso_range() {
  return range;
}

std::uint64_t clock_ns(int clock) {
  timespec now{};
  // CPU clocks of this thread and process ask the host; the vDSO would do that from its own text, which is trapped.
  const bool is_cpu_clock = clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
  if (clock_function == nullptr || is_cpu_clock || clock_function(clock, &now) != 0) {
    raw(SYS_clock_gettime, clock, &now);
  }
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace belljar::kernel::host
