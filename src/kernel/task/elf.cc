#include "kernel/task/elf.h"

#include <errno.h>
#include <sys/mman.h>

#include <cstring>

#include "kernel/arena/layout.h"
#include "kernel/mm/address_space.h"
#include "kernel/mm/text_cache.h"
#include "kernel/mm/user_memory.h"

namespace belljar::kernel {
namespace {

SysResult<void> read_exactly(File& file, void* to, std::size_t size, std::uint64_t offset) {
  const Area area{reinterpret_cast<std::uint64_t>(to), size};
  Buffers buffers = Buffers::of_kernel(area);
  std::uint64_t position = offset;
  while (buffers.left() > 0) {
    const std::uint64_t count = TRY(file.read(buffers, &position));
    if (count == 0) return error(ENOEXEC);
  }
  return {};
}

SysResult<void> check_parts(File& file, ElfPlan* plan) {
  plan->low = ~0ULL;
  for (int i = 0; i < plan->header.e_phnum; ++i) {
    const Elf64_Phdr& part = plan->parts[i];
    if (part.p_type == PT_INTERP) {
      if (part.p_filesz < 2 || part.p_filesz > sizeof plan->interpreter) return error(ENOEXEC);
      TRY_VOID(read_exactly(file, plan->interpreter, part.p_filesz, part.p_offset));
      if (plan->interpreter[part.p_filesz - 1] != '\0') return error(ENOEXEC);
      plan->has_interpreter = true;
    }
    if (part.p_type == PT_GNU_STACK) plan->wants_executable_stack = (part.p_flags & PF_X) != 0;
    if (part.p_type != PT_LOAD || part.p_memsz == 0) continue;
    if (part.p_memsz < part.p_filesz || part.p_vaddr + part.p_memsz < part.p_vaddr ||
        part.p_vaddr + part.p_memsz > kGuestEnd || ((part.p_vaddr ^ part.p_offset) & (kPageSize - 1)) != 0) {
      return error(ENOEXEC);
    }
    if (page_down(part.p_vaddr) < plan->low) plan->low = page_down(part.p_vaddr);
    if (page_up(part.p_vaddr + part.p_memsz) > plan->high) plan->high = page_up(part.p_vaddr + part.p_memsz);
  }
  return plan->low < plan->high ? SysResult<void>() : error(ENOEXEC);
}

int protection_of(const Elf64_Phdr& part) {
  return ((part.p_flags & PF_R) != 0 ? PROT_READ : 0) | ((part.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
         ((part.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
}

SysResult<void> map_anonymous(std::uint64_t begin, std::uint64_t end, int protection) {
  if (begin >= end) return {};
  MapRequest request;
  request.address = begin;
  request.size = end - begin;
  request.protection = protection;
  request.flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  TRY(map_memory(request));
  return {};
}

SysResult<void> map_part(File& file, const Elf64_Phdr& part, std::uint64_t base) {
  const std::uint64_t begin = page_down(base + part.p_vaddr);
  const std::uint64_t file_end = base + part.p_vaddr + part.p_filesz;
  const int protection = protection_of(part);
  if (part.p_filesz > 0) {
    MapRequest request;
    request.address = begin;
    request.size = file_end - begin;
    request.protection = protection;
    request.flags = MAP_PRIVATE | MAP_FIXED;
    request.file = &file;
    request.offset = page_down(part.p_offset);
    TRY(map_memory(request));
  }
  const std::uint64_t filled = part.p_filesz > 0 ? page_up(file_end) : begin;
  // What of the last page is not the file's is zero: also after the part's end, where the dynamic loader takes its
  // first memory from.
  if (part.p_memsz > part.p_filesz && part.p_filesz > 0 && (protection & PROT_WRITE) != 0) {
    TRY_VOID(zero_out(file_end, filled - file_end));
  }
  return map_anonymous(filled, page_up(base + part.p_vaddr + part.p_memsz), protection);
}

// The base for a position-independent file: room for all of it is taken first, so that nothing else comes between.
SysResult<std::uint64_t> choose_base(const ElfPlan& plan, std::uint64_t hint) {
  MapRequest request;
  if (plan.header.e_type == ET_EXEC) {
    // Nothing but the trampolines goes before it.
    request.address = plan.low - kTrampolineSize;
    request.size = kTrampolineSize;
    request.flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    TRY(map_memory(request));
    return 0ULL;
  }
  request.address = hint;
  request.size = plan.high - plan.low + kTrampolineSize;
  request.flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  return TRY(map_memory(request)) + kTrampolineSize - plan.low;
}

}  // namespace

SysResult<void> read_elf(File& file, ElfPlan* plan) {
  TRY_VOID(read_exactly(file, &plan->header, sizeof plan->header, 0));
  const Elf64_Ehdr& header = plan->header;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != EM_X86_64 || (header.e_type != ET_EXEC && header.e_type != ET_DYN) ||
      header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || header.e_phnum > ElfPlan::kPartsMost) {
    return error(ENOEXEC);
  }
  TRY_VOID(read_exactly(file, plan->parts, header.e_phnum * sizeof(Elf64_Phdr), header.e_phoff));
  return check_parts(file, plan);
}

SysResult<LoadedElf> load_elf(File& file, const ElfPlan& plan, std::uint64_t hint) {
  LoadedElf loaded;
  loaded.base = TRY(choose_base(plan, hint));
  const MapSource source = TRY(file.map(0, kPageSize, false, false));
  if (source.image_id != 0) note_image(source.image_id, loaded.base + plan.low, source.offset);
  loaded.entry = loaded.base + plan.header.e_entry;
  loaded.end = loaded.base + plan.high;
  for (int i = 0; i < plan.header.e_phnum; ++i) {
    const Elf64_Phdr& part = plan.parts[i];
    if (part.p_type != PT_LOAD || part.p_memsz == 0) continue;
    TRY_VOID(map_part(file, part, loaded.base));
    if (plan.header.e_phoff >= part.p_offset && plan.header.e_phoff < part.p_offset + part.p_filesz) {
      loaded.headers = loaded.base + part.p_vaddr + plan.header.e_phoff - part.p_offset;
    }
  }
  return loaded;
}

}  // namespace belljar::kernel
