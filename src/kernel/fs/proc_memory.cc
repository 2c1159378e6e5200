// /proc/PID: what is in a process's memory. The memory of other processes can't be read from here: their command line
// is kept aside by execve(2), the rest they are asked for.
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "kernel/fs/proc.h"
#include "kernel/fs/tree.h"
#include "kernel/mm/address_space.h"
#include "kernel/mm/user_memory.h"
#include "kernel/task/question.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kTextMax = 1U << 20;
constexpr std::size_t kNameColumn = 73;

bool is_own(const Subject& subject) {
  return subject.process == current_process().pid;
}

// A range of the running process's memory; what can't be read is left out.
void write_range(std::uint64_t begin, std::uint64_t end, LongText& to) {
  if (end <= begin) return;
  const std::uint64_t size = std::min(end - begin, kTextMax);
  char* const into = to.reserve(size);
  if (into != nullptr && copy_in(into, begin, size)) to.commit(size);
}

void write_name(const MemoryArea& area, LongText& to) {
  switch (area.kind) {
    case MemoryArea::Kind::heap:
      to << "[heap]";
      return;
    case MemoryArea::Kind::stack:
      to << "[stack]";
      return;
    case MemoryArea::Kind::vdso:
      to << "[vdso]";
      return;
    default:
      break;
  }
  if (area.file == nullptr) return;
  char* const path = to.reserve(kPathMax);
  if (path == nullptr) return;
  const LockGuard guard(tree_lock());
  const auto size = path_of(*area.file, *current().fs->places.root, path, kPathMax);
  if (size) to.commit(*size);
}

void write_area(const MemoryArea& area, LongText& to) {
  const std::size_t line = to.size();
  const auto has = [&](std::uint32_t bit, char letter) { return (area.protection & bit) != 0 ? letter : '-'; };
  to.hex(area.begin, 8) << '-';
  to.hex(area.end, 8) << ' ' << has(PROT_READ, 'r') << has(PROT_WRITE, 'w') << has(PROT_EXEC, 'x')
                      << (area.is_shared ? 's' : 'p') << ' ';
  const Inode* const inode = area.file == nullptr ? nullptr : area.file->inode.get();
  const std::uint32_t device = inode == nullptr ? 0 : inode->device;
  to.hex(inode == nullptr ? 0 : area.offset, 8) << ' ';
  to.hex(major(device), 2) << ':';
  to.hex(minor(device), 2) << ' ';
  to.number(inode == nullptr ? 0 : inode->number) << ' ';
  if (area.kind != MemoryArea::Kind::anonymous) {
    to.pad(line, kNameColumn);
    write_name(area, to);
  }
  to << '\n';
}

template <typename Write>
void for_each_area(Write write) {
  MemoryArea area;
  for (std::uint64_t at = 0; find_area(at, &area); at = area.end) write(area);
}

void write_kibibytes(LongText& to, std::string_view name, std::uint64_t bytes) {
  const std::size_t line = to.size();
  to << name << ':';
  to.pad(line, 16).column(bytes / 1024, 8) << " kB\n";
}

// Which pages are there is the host's to know: all of them are said to be.
void write_sizes(LongText& to, std::uint64_t size) {
  for (const std::string_view name : {"Rss", "Pss"}) write_kibibytes(to, name, size);
  for (const std::string_view name : {"Shared_Clean", "Shared_Dirty", "Private_Clean"}) write_kibibytes(to, name, 0);
  write_kibibytes(to, "Private_Dirty", size);
  write_kibibytes(to, "Referenced", size);
  write_kibibytes(to, "Anonymous", size);
  for (const std::string_view name : {"LazyFree", "AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb",
                                      "Private_Hugetlb", "Swap", "SwapPss", "Locked"}) {
    write_kibibytes(to, name, 0);
  }
}

void write_arguments(LongText& to) {
  write_range(current_process().arguments_begin, current_process().arguments_end, to);
}

void write_environment(LongText& to) {
  write_range(current_process().environment_begin, current_process().environment_end, to);
}

void write_auxiliary(LongText& to) {
  write_range(current_process().auxiliary_begin, current_process().auxiliary_end, to);
}

void write_maps(LongText& to) {
  for_each_area([&](const MemoryArea& area) { write_area(area, to); });
}

void write_smaps(LongText& to) {
  for_each_area([&](const MemoryArea& area) {
    write_area(area, to);
    write_kibibytes(to, "Size", area.end - area.begin);
    to << "KernelPageSize:        4 kB\nMMUPageSize:           4 kB\n";
    write_sizes(to, area.end - area.begin);
    to << "THPeligible:           0\nVmFlags: \n";
  });
}

void write_rollup(LongText& to) {
  std::uint64_t begin = 0, end = 0, size = 0;
  for_each_area([&](const MemoryArea& area) {
    if (begin == 0) begin = area.begin;
    end = area.end;
    size += area.end - area.begin;
  });
  const std::size_t line = to.size();
  to.hex(begin, 8) << '-';
  to.hex(end, 8) << " ---p 00000000 00:00 0 ";
  to.pad(line, kNameColumn) << "[rollup]\n";
  write_sizes(to, size);
}

SysResult<void> tell(const Subject& subject, Answer answer, LongText& to) {
  if (is_own(subject)) {
    answer(to);
  } else {
    TRY(ask_process(subject.process, answer, to));
  }
  return {};
}

}  // namespace

SysResult<void> proc_cmdline(const Subject& subject, LongText& to) {
  if (is_own(subject)) {
    write_arguments(to);
    return {};
  }
  bool is_cut = false;
  TRY_VOID(tell_of_task(subject, [&](const Process& process, const Task&) {
    if (!process.command_line || process.state == ProcessState::zombie) return;
    is_cut = process.command_line->size == CommandLine::kSizeMax;
    if (!is_cut) to << process.command_line->text();
  }));
  if (!is_cut || TRY(ask_process(subject.process, write_arguments, to))) return {};
  return tell_of_task(subject, [&](const Process& process, const Task&) { to << process.command_line->text(); });
}

SysResult<void> proc_environ(const Subject& subject, LongText& to) {
  return tell(subject, write_environment, to);
}

SysResult<void> proc_auxv(const Subject& subject, LongText& to) {
  return tell(subject, write_auxiliary, to);
}

SysResult<void> proc_maps(const Subject& subject, LongText& to) {
  return tell(subject, write_maps, to);
}

SysResult<void> proc_smaps(const Subject& subject, LongText& to) {
  return tell(subject, write_smaps, to);
}

SysResult<void> proc_smaps_rollup(const Subject& subject, LongText& to) {
  return tell(subject, write_rollup, to);
}

SysResult<void> proc_statm(const Subject& subject, LongText& to) {
  return tell_of_task(subject, [&](const Process& process, const Task&) {
    const std::uint64_t pages = process.memory_bytes / 4096;
    to.number(process.mapped_bytes / 4096) << ' ';
    to.number(pages) << " 0 0 0 ";
    to.number(pages) << " 0\n";
  });
}

}  // namespace belljar::kernel
