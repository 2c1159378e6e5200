#include "kernel/task/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "kernel/arena/layout.h"
#include "kernel/arena/random.h"
#include "kernel/entry/boot.h"
#include "kernel/entry/thread_state.h"
#include "kernel/fs/tree.h"
#include "kernel/host/calls.h"
#include "kernel/host/vdso.h"
#include "kernel/mm/address_space.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/task/clone.h"
#include "kernel/task/elf.h"
#include "kernel/task/exit.h"
#include "kernel/task/process_table.h"
#include "kernel/task/signals.h"
#include "kernel/time/interval_timers.h"

namespace belljar::kernel {
namespace {

constexpr int kInterpretersMost = 5;  // a #! line may name another script
constexpr std::size_t kHeadSize = 256;
constexpr std::uint64_t kStackMost = 64ULL << 20;
constexpr std::uint64_t kStackTop = 0x7ffb'0000'0000;
constexpr std::uint64_t kProgramBase = 0x5555'5000'0000;
constexpr std::uint64_t kClockTicks = 100;

struct Executable {
  Ref<Dentry> dentry;
  Ref<File> file;
};

SysResult<Executable> open_executable(std::string_view path, const Ref<Dentry>& start) {
  Task& task = current();
  Executable executable;
  LockGuard guard(tree_lock());
  executable.dentry = path.empty() ? start : TRY(walk(task.fs->places, start, path, task.credentials, {}));
  Inode* const inode = executable.dentry->inode.get();
  if (!inode->is_regular()) return error(EACCES);
  TRY_VOID(check_access(*inode, X_OK, task.credentials));
  if ((inode->mode & 0111) == 0) return error(EACCES);
  if (inode->is_open_for_writing()) return error(ETXTBSY);
  executable.file = TRY(inode->open(executable.dentry, 0));
  return executable;
}

SysResult<std::size_t> read_head(File& file, char* head) {
  const Area area{reinterpret_cast<std::uint64_t>(head), kHeadSize};
  Buffers buffers = Buffers::of_kernel(area);
  std::uint64_t position = 0;
  return TRY(file.read(buffers, &position));
}

// "#!interpreter [argument]": puts both before the script's path, in place of the first argument.
SysResult<std::string_view> follow_hash_bang(std::string_view head, std::string_view script, ExecStrings& arguments) {
  const std::size_t line_end = head.find('\n');
  std::string_view line = head.substr(2, line_end == std::string_view::npos ? line_end : line_end - 2);
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  while (!line.empty() && (is_space(line.back()) || line.back() == '\r')) line.remove_suffix(1);
  if (line.empty()) return error(ENOEXEC);
  std::size_t split = 0;
  while (split < line.size() && !is_space(line[split])) ++split;
  std::string_view argument = line.substr(split);
  while (!argument.empty() && is_space(argument.front())) argument.remove_prefix(1);
  const std::string_view texts[] = {line.substr(0, split), argument.empty() ? script : argument, script};
  TRY_VOID(arguments.replace_front(1, texts, argument.empty() ? 2 : 3));
  return texts[0];
}

// All other threads leave; the running one becomes the leader.
SysResult<void> become_only_thread(Task& task) {
  Process& process = *task.process;
  tasks_lock().lock();
  if (process.is_exiting || process.executing != nullptr) {
    tasks_lock().unlock();
    return error(kRestart);
  }
  process.executing = &task;
  for (Task* other = process.first_task; other != nullptr; other = other->next_in_process) {
    if (other != &task) kick(*other);
  }
  while (process.task_count > 1) {
    prepare_to_sleep();
    tasks_lock().unlock();
    (void)sleep_until_woken(host::clock_ns(CLOCK_MONOTONIC) + 10'000'000);
    tasks_lock().lock();
  }
  process.executing = nullptr;
  if (process.leader != &task) {
    Task* const old = process.leader;
    process_table().ids[task.tid].task = nullptr;
    process_table().ids[process.pid].task = &task;
    task.tid = process.pid;
    process.leader = &task;
    delete_object(old);
  }
  tasks_lock().unlock();
  return {};
}

void reset_signals(Task& task) {
  Process& process = *task.process;
  LockGuard guard(tasks_lock());
  for (SignalAction& action : process.actions->actions) {
    const bool is_ignored = action.handler == reinterpret_cast<std::uint64_t>(SIG_IGN);
    action = SignalAction{};
    if (is_ignored) action.handler = reinterpret_cast<std::uint64_t>(SIG_IGN);
  }
  task.alternate_stack = {nullptr, SS_DISABLE, 0};
  process.has_executed = true;
  process.exit_signal = SIGCHLD;
}

SysResult<void> unshare_for_exec(Task& task) {
  if (task.files->count() > 1) {
    Ref<FdTable> files = TRY(task.files->copy());
    LockGuard guard(tasks_lock());
    std::swap(task.files, files);
  }
  if (task.process->actions->count() > 1) {
    Ref<SignalActions> own = make_ref<SignalActions>();
    if (!own) return error(ENOMEM);
    std::memcpy(own->actions, task.process->actions->actions, sizeof own->actions);
    task.process->actions = std::move(own);
  }
  return {};
}

void set_name(Task& task, std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const std::size_t size = name.size() < sizeof task.name - 1 ? name.size() : sizeof task.name - 1;
  std::memset(task.name, 0, sizeof task.name);
  std::memcpy(task.name, name.data(), size);
}

// Without memory for it others see none.
void keep_command_line(Process& process, const ExecStrings& arguments) {
  Ref<CommandLine> line = make_ref<CommandLine>();
  if (line) {
    const std::string_view bytes = arguments.bytes().substr(0, CommandLine::kSizeMax);
    std::memcpy(line->characters, bytes.data(), bytes.size());
    line->size = static_cast<std::uint32_t>(bytes.size());
  }
  LockGuard guard(tasks_lock());
  std::swap(process.command_line, line);
}

std::uint64_t random_pages(std::uint64_t most) {
  std::uint64_t value = 0;
  fill_random(&value, sizeof value);
  return value % most * kPageSize;
}

SysResult<std::uint64_t> map_stack(const Process& process, bool is_executable) {
  std::uint64_t size = process.limits[RLIMIT_STACK].rlim_cur;
  if (size > kStackMost) size = kStackMost;
  MapRequest request;
  request.size = page_up(size);
  request.address = kStackTop - random_pages(1U << 22) - request.size;
  request.protection = PROT_READ | PROT_WRITE | (is_executable ? PROT_EXEC : 0);
  request.flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  request.kind = MemoryArea::Kind::stack;
  return TRY(map_memory(request)) + request.size;
}

// The new program's stack, from its top downwards, as the System V ABI for x86-64 has it.
class StackBuilder {
 public:
  explicit StackBuilder(std::uint64_t top) : at_(top) {}
  SysResult<std::uint64_t> push(const void* data, std::size_t size) {
    at_ -= size;
    TRY_VOID(copy_out(at_, data, size));
    return at_;
  }
  SysResult<void> push_word(std::uint64_t word) {
    TRY(push(&word, sizeof word));
    return {};
  }
  // Pointers to `count` strings that lie one after the other at `strings`, and a null.
  SysResult<void> push_pointers(std::string_view bytes, std::uint64_t strings, std::size_t count) {
    at_ -= (count + 1) * sizeof(std::uint64_t);
    std::size_t offset = 0;
    for (std::size_t i = 0; i < count; ++i) {
      TRY_VOID(copy_out(at_ + i * sizeof(std::uint64_t), strings + offset));
      offset += std::strlen(bytes.data() + offset) + 1;
    }
    return copy_out(at_ + count * sizeof(std::uint64_t), std::uint64_t{0});
  }
  void align(std::size_t words_to_come) { at_ = (at_ & ~15ULL) - (words_to_come % 2) * sizeof(std::uint64_t); }
  std::uint64_t at() const { return at_; }

 private:
  std::uint64_t at_;
};

struct NewProgram {
  LoadedElf program;
  LoadedElf interpreter;
  std::uint64_t header_count = 0;
};

SysResult<std::uint64_t> build_stack(std::uint64_t top, const NewProgram& loaded, std::string_view path,
                                     const ExecStrings& arguments, const ExecStrings& environment) {
  Task& task = current();
  Process& process = *task.process;
  StackBuilder stack(top - sizeof(std::uint64_t));
  std::uint8_t random[16];
  fill_random(random, sizeof random);
  const std::uint64_t random_at = TRY(stack.push(random, sizeof random));
  const std::uint64_t platform_at = TRY(stack.push("x86_64", 7));
  TRY(stack.push("", 1));
  const std::uint64_t path_at = TRY(stack.push(path.data(), path.size()));
  const std::uint64_t environment_at = TRY(stack.push(environment.bytes().data(), environment.bytes().size()));
  const std::uint64_t arguments_at = TRY(stack.push(arguments.bytes().data(), arguments.bytes().size()));
  process.arguments_begin = arguments_at;
  process.arguments_end = process.environment_begin = environment_at;
  process.environment_end = path_at;
  const HostFacts& host = host_facts();
  const Credentials& who = task.credentials;
  const std::uint64_t auxiliary[] = {AT_SYSINFO_EHDR, host::vdso_range().header,
                                     AT_HWCAP,        host.hwcap,
                                     AT_PAGESZ,       kPageSize,
                                     AT_CLKTCK,       kClockTicks,
                                     AT_PHDR,         loaded.program.headers,
                                     AT_PHENT,        sizeof(Elf64_Phdr),
                                     AT_PHNUM,        loaded.header_count,
                                     AT_BASE,         loaded.interpreter.base,
                                     AT_FLAGS,        0,
                                     AT_ENTRY,        loaded.program.entry,
                                     AT_UID,          who.uid,
                                     AT_EUID,         who.euid,
                                     AT_GID,          who.gid,
                                     AT_EGID,         who.egid,
                                     AT_SECURE,       0,
                                     AT_RANDOM,       random_at,
                                     AT_HWCAP2,       host.hwcap2,
                                     AT_EXECFN,       path_at,
                                     AT_PLATFORM,     platform_at,
                                     AT_MINSIGSTKSZ,  host.signal_stack_min,
                                     AT_NULL,         0};
  stack.align(1 + arguments.count() + 1 + environment.count() + 1);
  process.auxiliary_begin = TRY(stack.push(auxiliary, sizeof auxiliary));
  process.auxiliary_end = process.auxiliary_begin + sizeof auxiliary;
  TRY_VOID(stack.push_pointers(environment.bytes(), environment_at, environment.count()));
  TRY_VOID(stack.push_pointers(arguments.bytes(), arguments_at, arguments.count()));
  TRY_VOID(stack.push_word(arguments.count()));
  return stack.at();
}

SysResult<void> load_program(const Executable& executable, const ElfPlan& plan, const Executable& interpreter,
                             const ElfPlan& interpreter_plan, std::string_view path, const ExecStrings& arguments,
                             const ExecStrings& environment) {
  clear_address_space();
  NewProgram loaded;
  loaded.header_count = plan.header.e_phnum;
  loaded.program = TRY(load_elf(*executable.file, plan, kProgramBase + random_pages(1U << 20)));
  set_heap_start(page_up(loaded.program.end) + random_pages(1U << 13));
  std::uint64_t entry = loaded.program.entry;
  if (plan.has_interpreter) {
    loaded.interpreter = TRY(load_elf(*interpreter.file, interpreter_plan, 0));
    entry = loaded.interpreter.entry;
  }
  const std::uint64_t top = TRY(map_stack(current_process(), plan.wants_executable_stack));
  const std::uint64_t stack = TRY(build_stack(top, loaded, path, arguments, environment));
  Frame* const frame = thread_state().frame;
  *frame = Frame{};
  frame->rsp = stack;
  frame->rip = entry;
  frame->call = kNoCall;
  frame->flags = 0x202;
  asm volatile("wrfsbase %0" : : "r"(0UL));
  return {};
}

// Both plans are large; they go with the call.
struct Plans {
  ElfPlan program;
  ElfPlan interpreter;
};

// Before others can see by anything that it runs: it can't be written to from then on (ETXTBSY).
void note_executable(Process& process, Ref<Dentry> executable) {
  LockGuard guard(tasks_lock());
  std::swap(process.executable, executable);
}

SysResult<void> execute_elf(Executable executable, Plans& plans, std::string_view path, ExecStrings& arguments,
                            ExecStrings& environment) {
  Task& task = current();
  TRY_VOID(read_elf(*executable.file, &plans.program));
  Executable interpreter;
  if (plans.program.has_interpreter) {
    interpreter = TRY(open_executable(plans.program.interpreter, nullptr));
    TRY_VOID(read_elf(*interpreter.file, &plans.interpreter));
  }
  TRY_VOID(unshare_for_exec(task));
  if (task.vfork_return != nullptr) TRY_VOID(part_from_vfork_parent(task));
  TRY_VOID(become_only_thread(task));
  // From here on there is no way back: what fails ends the process.
  note_executable(*task.process, executable.dentry);
  if (!load_program(executable, plans.program, interpreter, plans.interpreter, path, arguments, environment)) {
    LockGuard guard(tasks_lock());
    begin_exit(*task.process, SIGKILL);
    task.has_work.store(1);
    return {};
  }
  task.files->close_on_exec();
  keep_command_line(*task.process, arguments);
  timers_at_exec(*task.process);
  reset_signals(task);
  task.clear_child_tid = task.robust_list = 0;
  set_name(task, path);
  return {};
}

}  // namespace

SysResult<void> execute(std::string_view path, const Ref<Dentry>& start, ExecStrings& arguments,
                        ExecStrings& environment) {
  auto* const plans = make_object<Plans>();
  auto* const names = static_cast<char*>(heap_allocate(kPathMax));
  SysResult<void> result = error(ENOMEM);
  std::string_view program = path;
  for (int depth = 0; plans != nullptr && names != nullptr; ++depth) {
    auto executable = open_executable(program, start);
    char head[kHeadSize];
    auto count =
        executable ? read_head(*executable->file, head) : SysResult<std::size_t>(std::unexpected(executable.error()));
    if (!count) {
      result = std::unexpected(count.error());
      break;
    }
    const std::string_view text(head, *count);
    if (!text.starts_with("#!")) {
      result = execute_elf(std::move(*executable), *plans, path, arguments, environment);
      break;
    }
    if (depth == kInterpretersMost) {
      result = error(ELOOP);
      break;
    }
    const auto interpreter = follow_hash_bang(text, program, arguments);
    if (!interpreter) {
      result = std::unexpected(interpreter.error());
      break;
    }
    std::memcpy(names, interpreter->data(), interpreter->size());
    program = {names, interpreter->size()};
  }
  delete_object(plans);
  heap_free(names, kPathMax);
  return result;
}

ExecStrings::~ExecStrings() {
  heap_free(text_, capacity_);
}

SysResult<void> ExecStrings::reserve(std::size_t size) {
  if (size > kExecStringsMost) return error(E2BIG);
  if (size <= capacity_) return {};
  std::size_t capacity = capacity_ == 0 ? kPageSize : capacity_;
  while (capacity < size) capacity *= 2;
  char* const text = static_cast<char*>(heap_allocate(capacity));
  if (text == nullptr) return error(ENOMEM);
  std::memcpy(text, text_, size_);
  heap_free(text_, capacity_);
  text_ = text;
  capacity_ = capacity;
  return {};
}

SysResult<void> ExecStrings::add(std::string_view text) {
  TRY_VOID(reserve(size_ + text.size() + 1));
  std::memcpy(text_ + size_, text.data(), text.size());
  size_ += text.size();
  text_[size_++] = '\0';
  ++count_;
  return {};
}

SysResult<void> ExecStrings::add_from(UserAddress vector) {
  if (vector == 0) return {};
  while (true) {
    const auto pointer = TRY(copy_in<std::uint64_t>(vector));
    if (pointer == 0) return {};
    vector += sizeof pointer;
    constexpr std::size_t kRoom = 128U << 10;  // MAX_ARG_STRLEN, execve(2)
    const std::size_t room = capacity_ - size_ > 1 ? capacity_ - size_ : 0;
    auto length = room > 0 ? copy_in_string(text_ + size_, pointer, room < kRoom ? room : kRoom)
                           : SysResult<std::size_t>(error(ENAMETOOLONG));
    if (!length && value_of(length.error()) == ENAMETOOLONG) {
      if (room >= kRoom) return error(E2BIG);
      TRY_VOID(reserve(size_ + kRoom));
      length = copy_in_string(text_ + size_, pointer, kRoom);
      if (!length && value_of(length.error()) == ENAMETOOLONG) return error(E2BIG);
    }
    size_ += TRY(length) + 1;
    ++count_;
  }
}

SysResult<void> ExecStrings::replace_front(std::size_t count, const std::string_view* texts, std::size_t text_count) {
  std::size_t cut = 0;
  for (std::size_t i = 0; i < count && i < count_; ++i) cut += std::strlen(text_ + cut) + 1;
  std::size_t added = 0;
  for (std::size_t i = 0; i < text_count; ++i) added += texts[i].size() + 1;
  TRY_VOID(reserve(size_ - cut + added));
  std::memmove(text_ + added, text_ + cut, size_ - cut);
  char* at = text_;
  for (std::size_t i = 0; i < text_count; ++i) {
    std::memcpy(at, texts[i].data(), texts[i].size());
    at += texts[i].size();
    *at++ = '\0';
  }
  size_ = size_ - cut + added;
  count_ = count_ - (count < count_ ? count : count_) + text_count;
  return {};
}

namespace {

// `folder` for a path that does not begin with "/"; AT_EMPTY_PATH: what it refers to.
SysResult<Ref<Dentry>> start_of(int folder, std::string_view path, int flags) {
  Task& task = current();
  if (path.empty() && (flags & AT_EMPTY_PATH) == 0) return error(ENOENT);
  if (folder == AT_FDCWD || path.starts_with('/')) return task.fs->places.working_folder;
  const Ref<File> file = TRY(task.files->get_any(folder));
  if (file->dentry() == nullptr) return error(path.empty() ? EACCES : ENOTDIR);
  return Ref<Dentry>::of(file->dentry());
}

SyscallResult execute_from_guest(int folder, UserAddress path, UserAddress arguments, UserAddress environment,
                                 int flags) {
  if ((flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) != 0) return error(EINVAL);
  auto* const name = static_cast<char*>(heap_allocate(kPathMax));
  if (name == nullptr) return error(ENOMEM);
  ExecStrings argument_strings;
  ExecStrings environment_strings;
  SyscallResult result = [&]() -> SyscallResult {
    const std::size_t size = TRY(copy_in_string(name, path, kPathMax));
    const Ref<Dentry> start = TRY(start_of(folder, {name, size}, flags));
    TRY_VOID(argument_strings.add_from(arguments));
    TRY_VOID(environment_strings.add_from(environment));
    if (argument_strings.count() == 0) TRY_VOID(argument_strings.add(""));
    TRY_VOID(execute({name, size}, start, argument_strings, environment_strings));
    return 0ULL;
  }();
  heap_free(name, kPathMax);
  return result;
}

}  // namespace

SyscallResult sys_execve(const SyscallArguments& arguments) {
  return execute_from_guest(AT_FDCWD, arguments.values[0], arguments.values[1], arguments.values[2], 0);
}

SyscallResult sys_execveat(const SyscallArguments& arguments) {
  return execute_from_guest(arguments.get<int>(0), arguments.values[1], arguments.values[2], arguments.values[3],
                            arguments.get<int>(4));
}

}  // namespace belljar::kernel
