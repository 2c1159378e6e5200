#include "kernel/mm/address_space.h"

#include <errno.h>
#include <sys/mman.h>

#include <cstring>

#include "kernel/arena/layout.h"
#include "kernel/arena/lock.h"
#include "kernel/arena/roots.h"
#include "kernel/host/calls.h"
#include "kernel/host/vdso.h"
#include "kernel/mm/text_cache.h"
#include "kernel/task/process.h"
#include "kernel/task/signals.h"

namespace belljar::kernel {
namespace {

// As /proc/sys/vm/max_map_count has it on the host.
constexpr std::size_t kAreasMost = 65530;
constexpr std::uint64_t kListAt = kPrivateBase + 0x2000'0000;  // after the thread slots

Lock lock{LockRank::memory};
std::size_t area_count = 0;
std::uint64_t mapped = 0;      // bytes of all areas
std::uint64_t accessible = 0;  // of those that are not PROT_NONE
std::uint64_t heap_start = 0;
std::uint64_t heap_end = 0;
std::atomic<std::uint64_t> sizes_seen = 0;  // of ArenaRoots::file_sizes

MemoryArea* areas() {
  return reinterpret_cast<MemoryArea*>(kListAt);
}

// The first area that ends above `address`.
std::size_t index_of(std::uint64_t address) {
  std::size_t low = 0;
  std::size_t high = area_count;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (areas()[middle].end > address) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

void hold(const MemoryArea& area) {
  if (area.file != nullptr) area.file->acquire();
}

void let_go(MemoryArea& area) {
  if (area.file != nullptr) area.file->release();
  area.file = nullptr;
}

std::uint64_t size_of(const MemoryArea& area) {
  return area.end - area.begin;
}

std::uint64_t accessible_size_of(const MemoryArea& area) {
  return area.protection == PROT_NONE ? 0 : size_of(area);
}

// For others to see.
void tell_sizes() {
  Process& process = current_process();
  process.mapped_bytes.store(mapped, std::memory_order_relaxed);
  process.memory_bytes.store(accessible, std::memory_order_relaxed);
  if (accessible > process.memory_peak_bytes.load(std::memory_order_relaxed)) {
    process.memory_peak_bytes.store(accessible, std::memory_order_relaxed);
  }
}

void insert_at(std::size_t index, const MemoryArea& area) {
  std::memmove(areas() + index + 1, areas() + index, (area_count - index) * sizeof(MemoryArea));
  areas()[index] = area;
  ++area_count;
}

void remove_at(std::size_t index, std::size_t count) {
  std::memmove(areas() + index, areas() + index + count, (area_count - index - count) * sizeof(MemoryArea));
  area_count -= count;
}

// Makes `address` a border between areas.
void split_at(std::uint64_t address) {
  const std::size_t index = index_of(address);
  if (index == area_count || areas()[index].begin >= address) return;
  MemoryArea upper = areas()[index];
  upper.offset += address - upper.begin;
  upper.begin = address;
  hold(upper);
  areas()[index].end = address;
  insert_at(index + 1, upper);
}

void forget_range(std::uint64_t begin, std::uint64_t end) {
  split_at(begin);
  split_at(end);
  const std::size_t first = index_of(begin);
  std::size_t last = first;
  for (; last < area_count && areas()[last].begin < end; ++last) {
    mapped -= size_of(areas()[last]);
    accessible -= accessible_size_of(areas()[last]);
    let_go(areas()[last]);
  }
  remove_at(first, last - first);
}

bool continues(const MemoryArea& left, const MemoryArea& right) {
  return left.end == right.begin && left.file == right.file && left.protection == right.protection &&
         left.kind == right.kind && left.is_shared == right.is_shared && left.is_read_only == right.is_read_only &&
         left.is_patched == right.is_patched &&
         (left.file == nullptr || left.offset + (left.end - left.begin) == right.offset);
}

void merge_around(std::size_t index) {
  if (index + 1 < area_count && continues(areas()[index], areas()[index + 1])) {
    areas()[index].end = areas()[index + 1].end;
    let_go(areas()[index + 1]);
    remove_at(index + 1, 1);
  }
  if (index > 0 && continues(areas()[index - 1], areas()[index])) {
    areas()[index - 1].end = areas()[index].end;
    let_go(areas()[index]);
    remove_at(index, 1);
  }
}

void note_area(const MemoryArea& area) {
  forget_range(area.begin, area.end);
  const std::size_t index = index_of(area.begin);
  hold(area);
  insert_at(index, area);
  merge_around(index);
  mapped += size_of(area);
  accessible += accessible_size_of(area);
  tell_sizes();
}

// Where the end of the area's file is, in whole pages; the end of the area where the file goes on.
std::uint64_t shown_end(const MemoryArea& area) {
  if (area.file == nullptr || !area.file->inode->is_regular()) return area.end;
  const std::uint64_t size = area.file->inode->size;
  if (size <= area.offset) return area.begin;
  const std::uint64_t shown = size - area.offset;
  return shown < area.end - area.begin ? area.begin + page_up(shown) : area.end;
}

// Takes the access to what is past the file's end, from `begin` on; pages of one's own are gone.
void hide_past_end(const MemoryArea& area, std::uint64_t begin) {
  if (begin >= area.end) return;
  if (!area.is_shared) host::madvise(begin, area.end - begin, MADV_DONTNEED);
  host::mprotect(begin, area.end - begin, PROT_NONE);
}

void fit_to_file(const MemoryArea& area) {
  const std::uint64_t end = shown_end(area);
  if (end > area.begin) host::mprotect(area.begin, end - area.begin, static_cast<int>(area.protection));
  hide_past_end(area, end);
}

bool may_be_cut(const MemoryArea& area) {
  return area.file != nullptr && area.file->inode->is_cut;
}

void fit_range(std::uint64_t begin, std::uint64_t end) {
  for (std::size_t i = index_of(begin); i < area_count && areas()[i].begin < end; ++i) {
    if (may_be_cut(areas()[i])) fit_to_file(areas()[i]);
  }
}

// A new mapping: its file is cut from now on where it ends earlier. `is_fit`: no access was given to what lies there.
void note_cut(const MemoryArea& area, bool is_fit) {
  if (shown_end(area) == area.end) return;
  area.file->inode->is_cut = true;
  const std::uint64_t end = shown_end(area);
  if (!is_fit && end < area.end) host::mprotect(end, area.end - end, PROT_NONE);
}

// Tells all other processes, once, that sizes of files changed.
void tell_of_file_sizes(std::uint64_t changes) {
  std::atomic<std::uint64_t>& told = arena_roots().file_sizes_told;
  std::uint64_t before = told.load();
  while (before < changes && !told.compare_exchange_weak(before, changes)) {
  }
  if (before >= changes) return;
  LockGuard guard(tasks_lock());
  for (Process* process = next_process(0); process != nullptr; process = next_process(process->pid)) {
    if (process == &current_process()) continue;
    for (Task* task = process->first_task; task != nullptr; task = task->next_in_process) nudge(*task);
  }
}

bool is_guest_range(std::uint64_t address, std::uint64_t size) {
  if (size > kGuestEnd || address > kGuestEnd - size) return false;
  return address + size <= kKernelBase || address >= kKernelEnd;
}

// mmap(2)'s flags that the seccomp profile allows; the others only advise, or are refused.
constexpr int kPassedFlags =
    MAP_PRIVATE | MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_NORESERVE | MAP_STACK | MAP_32BIT;

SysResult<void> check_request(const MapRequest& request) {
  if (request.size == 0 || page_up(request.size) == 0) return error(request.size == 0 ? EINVAL : ENOMEM);
  const int sharing = request.flags & MAP_TYPE;
  if (sharing != MAP_PRIVATE && sharing != MAP_SHARED && sharing != MAP_SHARED_VALIDATE) return error(EINVAL);
  if ((request.flags & MAP_HUGETLB) != 0) return error(ENOMEM);
  if ((request.offset & (kPageSize - 1)) != 0) return error(EINVAL);
  const bool is_fixed = (request.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
  if (!is_fixed) return {};
  if ((request.address & (kPageSize - 1)) != 0) return error(EINVAL);
  if (request.address < kGuestLowest) return error(EPERM);
  if (!is_guest_range(request.address, page_up(request.size))) return error(ENOMEM);
  return {};
}

struct HostSource {
  HostPlace place;
  MapSource file;
};

SysResult<HostSource> source_of(const MapRequest& request, bool is_shared) {
  if (request.file == nullptr) return HostSource{};
  const bool writes = (request.protection & PROT_WRITE) != 0;
  const MapSource source = TRY(request.file->map(request.offset, request.size, is_shared, writes));
  if (source.kind == MapSource::Kind::anonymous) return HostSource{};
  if (source.kind == MapSource::Kind::arena) return HostSource{{kArenaFd, source.offset}, source};
  return HostSource{place_of_content(source.offset), source};
}

}  // namespace

void make_address_space() {
  host::mmap(kListAt, page_up(kAreasMost * sizeof(MemoryArea)), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

SysResult<std::uint64_t> map_memory(const MapRequest& request) {
  TRY_VOID(check_request(request));
  const bool is_shared = (request.flags & MAP_TYPE) != MAP_PRIVATE;
  const HostSource source = TRY(source_of(request, is_shared));
  const std::uint64_t size = page_up(request.size);
  int flags = (request.flags & kPassedFlags & ~MAP_TYPE & ~MAP_ANONYMOUS) | (is_shared ? MAP_SHARED : MAP_PRIVATE);
  if (source.place.fd < 0) flags |= MAP_ANONYMOUS;
  LockGuard guard(lock);
  if (area_count + 3 > kAreasMost) return error(ENOMEM);
  const rlimit& limit = current_process().limits[RLIMIT_AS];
  if (limit.rlim_cur != RLIM_INFINITY && mapped + size > limit.rlim_cur) return error(ENOMEM);
  const TextRequest text{request.address, size, request.protection, flags, source.file};
  long result = 0;
  bool is_patched = false;
  const bool is_image = source.file.image_id != 0 && !is_shared && (request.protection & PROT_WRITE) == 0;
  const bool is_text = is_image && (request.protection & PROT_EXEC) != 0;
  const bool is_library_map =
      is_image && !is_text && request.address == 0 && request.offset == 0 && is_library(source.file);
  if (is_text) {
    result = map_text(text, &is_patched);
  } else if (is_library_map) {
    result = map_library(text);
  } else {
    result = host::mmap(text.address, text.size, text.protection, text.flags, source.place.fd, source.place.offset);
  }
  if (result < 0) return error(static_cast<int>(-result));
  MemoryArea area;
  area.begin = static_cast<std::uint64_t>(result);
  area.end = area.begin + size;
  area.offset = request.file == nullptr ? 0 : request.offset;
  area.file = request.file == nullptr ? nullptr : request.file->dentry();
  area.protection = static_cast<std::uint32_t>(request.protection & (PROT_READ | PROT_WRITE | PROT_EXEC));
  area.kind = request.file != nullptr ? MemoryArea::Kind::file : request.kind;
  area.is_shared = is_shared;
  area.is_read_only = is_shared && request.file != nullptr && !request.file->is_writable();
  area.image_id = source.file.image_id;
  area.is_patched = is_patched;
  note_area(area);
  note_cut(area, is_library_map);
  return area.begin;
}

SysResult<void> unmap_memory(std::uint64_t address, std::uint64_t size) {
  if ((address & (kPageSize - 1)) != 0 || size == 0) return error(EINVAL);
  size = page_up(size);
  if (!is_guest_range(address, size)) return error(EINVAL);
  LockGuard guard(lock);
  if (area_count + 2 > kAreasMost) return error(ENOMEM);
  const long result = host::munmap(address, size);
  if (result < 0) return error(static_cast<int>(-result));
  forget_range(address, address + size);
  tell_sizes();
  return {};
}

SysResult<void> protect_memory(std::uint64_t address, std::uint64_t size, int protection) {
  if ((address & (kPageSize - 1)) != 0) return error(EINVAL);
  size = page_up(size);
  if (size == 0) return {};
  if (!is_guest_range(address, size)) return error(ENOMEM);
  LockGuard guard(lock);
  if (area_count + 2 > kAreasMost) return error(ENOMEM);
  for (std::size_t i = index_of(address); i < area_count && areas()[i].begin < address + size; ++i) {
    if ((protection & PROT_WRITE) != 0 && areas()[i].is_read_only) return error(EACCES);
  }
  const long result = host::mprotect(address, size, protection);
  if (result < 0) return error(static_cast<int>(-result));
  split_at(address);
  split_at(address + size);
  for (std::size_t i = index_of(address); i < area_count && areas()[i].begin < address + size; ++i) {
    accessible -= accessible_size_of(areas()[i]);
    areas()[i].protection = static_cast<std::uint32_t>(protection & (PROT_READ | PROT_WRITE | PROT_EXEC));
    accessible += accessible_size_of(areas()[i]);
    if (may_be_cut(areas()[i])) hide_past_end(areas()[i], shown_end(areas()[i]));
  }
  tell_sizes();
  return {};
}

SysResult<std::uint64_t> remap_memory(std::uint64_t address, std::uint64_t old_size, std::uint64_t new_size, int flags,
                                      std::uint64_t new_address) {
  if ((address & (kPageSize - 1)) != 0 || new_size == 0 || old_size == 0) return error(EINVAL);
  if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0) return error(EINVAL);
  old_size = page_up(old_size);
  new_size = page_up(new_size);
  if (!is_guest_range(address, old_size)) return error(EFAULT);
  if ((flags & MREMAP_FIXED) != 0 && (new_address < kGuestLowest || !is_guest_range(new_address, new_size))) {
    return error(EINVAL);
  }
  LockGuard guard(lock);
  const std::size_t index = index_of(address);
  if (index == area_count || areas()[index].begin > address || areas()[index].end < address + old_size)
    return error(EFAULT);
  MemoryArea area = areas()[index];
  if (area.file != nullptr && new_size > old_size) {
    TRY_VOID(area.file->inode->extend_map(area.offset + (address - area.begin) + new_size, area.is_shared));
  }
  // The host moves what it has as one mapping.
  const bool is_cut = may_be_cut(area);
  if (is_cut) host::mprotect(area.begin, area.end - area.begin, static_cast<int>(area.protection));
  const long result = host::mremap(address, old_size, new_size, flags, new_address);
  if (result < 0) {
    fit_range(area.begin, area.end);
    return error(static_cast<int>(-result));
  }
  const std::uint64_t old_begin = area.begin;
  const std::uint64_t old_end = area.end;
  area.offset += area.file == nullptr ? 0 : address - area.begin;
  hold(area);
  forget_range(address, address + old_size);
  area.begin = static_cast<std::uint64_t>(result);
  area.end = area.begin + new_size;
  note_area(area);
  note_cut(area, false);
  if (is_cut) fit_range(old_begin, old_end);
  let_go(area);
  return area.begin;
}

void announce_file_sizes() {
  arena_roots().file_sizes.fetch_add(1);
  current().has_work.store(1);
}

void adopt_file_sizes() {
  const std::uint64_t changes = arena_roots().file_sizes.load();
  if (changes == sizes_seen.load()) return;
  {
    LockGuard guard(lock);
    fit_range(0, kGuestEnd);
    sizes_seen.store(changes);
  }
  tell_of_file_sizes(changes);
}

FileFault settle_file_fault(std::uint64_t address, std::uint32_t wanted) {
  LockGuard guard(lock);
  const std::size_t index = index_of(address);
  if (index == area_count || areas()[index].begin > address) return FileFault::none;
  const MemoryArea& area = areas()[index];
  if ((area.protection & wanted) == 0) return FileFault::none;
  if (address >= shown_end(area)) return FileFault::past_end;
  if (!may_be_cut(area)) return FileFault::none;
  fit_to_file(area);
  return FileFault::grown;
}

void set_heap_start(std::uint64_t start) {
  heap_start = heap_end = start;
}

std::uint64_t set_heap_end(std::uint64_t end) {
  if (end < heap_start || !is_guest_range(heap_start, end - heap_start)) return heap_end;
  const std::uint64_t old_top = page_up(heap_end);
  const std::uint64_t new_top = page_up(end);
  const rlimit& limit = current_process().limits[RLIMIT_DATA];
  if (limit.rlim_cur != RLIM_INFINITY && end - heap_start > limit.rlim_cur) return heap_end;
  if (new_top > old_top) {
    MapRequest request;
    request.address = old_top;
    request.size = new_top - old_top;
    request.protection = PROT_READ | PROT_WRITE;
    request.flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    request.kind = MemoryArea::Kind::heap;
    if (!map_memory(request)) return heap_end;
  } else if (new_top < old_top) {
    if (!unmap_memory(new_top, old_top - new_top)) return heap_end;
  }
  heap_end = end;
  return heap_end;
}

void clear_address_space() {
  LockGuard guard(lock);
  const host::VdsoRange& vdso = host::vdso_range();
  host::munmap(kGuestLowest, kKernelBase - kGuestLowest);
  if (vdso.begin == 0) {
    host::munmap(kKernelEnd, kGuestEnd - kKernelEnd);
  } else {
    host::munmap(kKernelEnd, vdso.begin - kKernelEnd);
    host::munmap(vdso.end, kGuestEnd - vdso.end);
  }
  for (std::size_t i = 0; i < area_count; ++i) let_go(areas()[i]);
  area_count = mapped = accessible = 0;
  heap_start = heap_end = 0;
  forget_images();
}

void leave_address_space() {
  LockGuard guard(lock);
  release_areas();  // which does not write to them: after fork(2) that would copy them
  area_count = 0;
}

bool find_area(std::uint64_t address, MemoryArea* found) {
  LockGuard guard(lock);
  return find_area_locked(address, found);
}

void mark_patched_locked(std::uint64_t address) {
  areas()[index_of(address)].is_patched = true;
}

bool find_area_locked(std::uint64_t address, MemoryArea* found) {
  const std::size_t index = index_of(address);
  if (index == area_count) return false;
  *found = areas()[index];
  return true;
}

void hold_areas() {
  for (std::size_t i = 0; i < area_count; ++i) hold(areas()[i]);
}

void release_areas() {
  for (std::size_t i = 0; i < area_count; ++i) {
    if (areas()[i].file != nullptr) areas()[i].file->release();
  }
}

void lock_address_space_for_fork() {
  lock.lock();
}

void unlock_address_space_after_fork() {
  lock.unlock();
}

}  // namespace belljar::kernel
