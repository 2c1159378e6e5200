#include "tiers/container/init_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "spec/errors.h"

namespace belljar::container {
namespace {

// Reserved, not used: only pages that something is written to count. Twice the longest command line and environment
// that execve(2) takes, and the /proc/cpuinfo of a very large host.
constexpr std::size_t kMemoryBytes = std::size_t{16} << 20;

// Hands out memory from one end to the other. Once it is full it gives null, and says so at the end.
class Arena {
 public:
  Arena(char* begin, char* end) : next_(begin), end_(end) {}

  bool is_full() const { return is_full_; }

  template <typename T>
  T* take(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= alignof(std::max_align_t));
    const std::size_t misplaced = reinterpret_cast<std::uintptr_t>(next_) % alignof(T);
    const std::size_t padding = misplaced == 0 ? 0 : alignof(T) - misplaced;
    const auto room = static_cast<std::size_t>(end_ - next_);
    if (padding + count * sizeof(T) > room) {
      is_full_ = true;
      return nullptr;
    }
    char* const place = next_ + padding;
    next_ = place + count * sizeof(T);
    return reinterpret_cast<T*>(place);
  }

  char* text(std::string_view text) {
    char* const copy = take<char>(text.size() + 1);
    if (copy == nullptr) return nullptr;
    std::memcpy(copy, text.data(), text.size());
    copy[text.size()] = '\0';
    return copy;
  }

  // A list of copy(item) for each item.
  template <typename Item, typename Copy>
  auto list(const std::vector<Item>& items, Copy copy) {
    using Copied = decltype(copy(items.front()));
    Copied* const copies = take<Copied>(items.size());
    if (copies == nullptr) return std::span<const Copied>();
    Copied* place = copies;
    for (const Item& item : items) new (place++) Copied(copy(item));
    return std::span<const Copied>(copies, items.size());
  }

  std::span<const char* const> texts(const std::vector<std::string>& texts) {
    return list(texts, [this](const std::string& one) -> const char* { return text(one); });
  }

  std::span<const InitFile> file_list(const std::vector<PlannedFile>& files) {
    return list(files, [this](const PlannedFile& file) {
      return InitFile{text(file.path), {text(file.content), file.content.size()}};
    });
  }

  char* const* terminated(const std::vector<std::string>& texts) {
    char** const pointers = take<char*>(texts.size() + 1);
    if (pointers == nullptr) return nullptr;
    char** place = pointers;
    for (const std::string& one : texts) *place++ = text(one);
    *place = nullptr;
    return pointers;
  }

 private:
  char* next_;
  char* end_;
  bool is_full_ = false;
};

}  // namespace

InitPlanMemory::InitPlanMemory(Mapping memory) : memory_(std::move(memory)) {
  new (memory_.address()) InitPlan;
}

Result<InitPlanMemory> InitPlanMemory::create() {
  auto memory = Mapping::create_shared(kMemoryBytes);
  if (memory) return InitPlanMemory(std::move(*memory));
  return fail(ErrorCode::no_resources, fmt::format("can't map shared memory: {}", errno_text(memory.error().value)));
}

Result<void> InitPlanMemory::fill(const StartPlan& from) {
  InitPlan& to = plan();
  char* const begin = static_cast<char*>(memory_.address());
  Arena arena(begin + sizeof(InitPlan), begin + kMemoryBytes);
  to.mounts = arena.list(from.mounts, [&](const PlannedMount& mount) {
    return InitMount{arena.text(mount.source), arena.text(mount.target), mount.device,          mount.inode,
                     mount.attributes,         mount.is_folder,          mount.changes_allowed, mount.is_caller_mount,
                     mount.is_workspace,       mount.must_be_copied};
  });
  to.root_links = arena.list(
      from.root_links, [&](const RootLink& link) { return InitLink{arena.text(link.name), arena.text(link.target)}; });
  to.folders = arena.texts(from.folders);
  to.files = arena.file_list(from.files);
  to.cover_files = arena.file_list(from.cover_files);
  to.hidden_paths = arena.texts(from.hidden_paths);
  to.sockets = arena.texts(from.sockets);
  to.own_folders = arena.texts(from.own_folders);
  to.dev_is_mounted = from.dev_is_mounted;
  to.tmp_size = arena.text(from.tmp_size);
  to.tmp_inodes = arena.text(from.tmp_inodes);
  to.script_target = arena.text(from.script_target);
  to.exec_paths = arena.texts(from.exec_paths);
  to.arguments = arena.terminated(from.arguments);
  to.environment = arena.terminated(from.environment);
  to.working_folder = arena.text(from.working_folder);
  to.terminal = from.terminal;
  to.open_files = from.open_files;
  to.file_size = from.file_size;
  to.landlock_abi = from.landlock_abi;
  to.sampled = from.sampled;
  if (from.user_kernel) {
    to.kernel_memory_bytes = from.user_kernel->memory_bytes;
    to.kernel_tasks = from.user_kernel->tasks;
    to.kernel_cpus = from.user_kernel->cpus;
    to.kernel_traces_calls = from.user_kernel->traces_calls;
  }
  to.own_arguments = from.own_arguments;
  to.own_environment = from.own_environment;
  if (!arena.is_full()) return {};
  return fail(ErrorCode::no_resources,
              fmt::format("the command line and environment are too long: more than {} bytes with the rest of the plan",
                          kMemoryBytes));
}

}  // namespace belljar::container
