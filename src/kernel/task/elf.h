// ELF files (elf(5)) into the address space.
#pragma once

#include <elf.h>

#include <cstdint>

#include "kernel/base/result.h"
#include "kernel/fs/file.h"

namespace belljar::kernel {

// The parts of an ELF file that are to be mapped, read and checked.
struct ElfPlan {
  static constexpr int kPartsMost = 32;
  Elf64_Ehdr header;
  Elf64_Phdr parts[kPartsMost];
  std::uint64_t low = 0;  // of the addresses in the file
  std::uint64_t high = 0;
  bool has_interpreter = false;
  bool wants_executable_stack = false;
  char interpreter[256];
};

// ENOEXEC for what is no program for this processor.
SysResult<void> read_elf(File& file, ElfPlan* plan);

struct LoadedElf {
  std::uint64_t base = 0;  // what was added to the addresses in the file
  std::uint64_t entry = 0;
  std::uint64_t headers = 0;  // where the program headers are in memory
  std::uint64_t end = 0;      // after its last byte
};
// Maps it; a position-independent one at `hint`, or where there is room.
SysResult<LoadedElf> load_elf(File& file, const ElfPlan& plan, std::uint64_t hint);

}  // namespace belljar::kernel
