#include "kernel/syscalls/trace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <span>

#include "kernel/base/text.h"
#include "kernel/mm/user_memory.h"
#include "kernel/task/process.h"

namespace belljar::kernel {
namespace {

enum class Kind : std::uint8_t {
  number,   // signed, in decimal
  size,     // unsigned, in decimal
  octal,    // modes
  hex,      // flags without names
  pointer,  // an address, or NULL
  fd,
  at,      // a descriptor, or AT_FDCWD
  path,    // a text with a NUL
  input,   // bytes, as many as the next argument says
  output,  // bytes that the call wrote, as many as its result says
  open_flags,
  protection,
  map_flags,
  signal,
  clock,
  whence,
  time,  // a timespec
};

struct Name {
  std::uint64_t value;
  std::string_view name;
};

#define NAME(name) {static_cast<std::uint64_t>(name), #name}
constexpr Name kOpenFlags[] = {NAME(O_WRONLY),  NAME(O_RDWR),    NAME(O_CREAT),     NAME(O_EXCL),     NAME(O_NOCTTY),
                               NAME(O_TRUNC),   NAME(O_APPEND),  NAME(O_NONBLOCK),  NAME(O_SYNC),     NAME(O_DSYNC),
                               NAME(O_DIRECT),  NAME(O_TMPFILE), NAME(O_DIRECTORY), NAME(O_NOFOLLOW), NAME(O_NOATIME),
                               NAME(O_CLOEXEC), NAME(O_PATH)};
constexpr Name kProtections[] = {NAME(PROT_READ), NAME(PROT_WRITE), NAME(PROT_EXEC)};
constexpr Name kMapFlags[] = {NAME(MAP_SHARED),    NAME(MAP_PRIVATE),   NAME(MAP_FIXED),          NAME(MAP_ANONYMOUS),
                              NAME(MAP_GROWSDOWN), NAME(MAP_DENYWRITE), NAME(MAP_NORESERVE),      NAME(MAP_POPULATE),
                              NAME(MAP_STACK),     NAME(MAP_HUGETLB),   NAME(MAP_FIXED_NOREPLACE)};
constexpr Name kSignals[] = {NAME(SIGHUP),  NAME(SIGINT),   NAME(SIGQUIT), NAME(SIGILL),  NAME(SIGTRAP),
                             NAME(SIGABRT), NAME(SIGBUS),   NAME(SIGFPE),  NAME(SIGKILL), NAME(SIGUSR1),
                             NAME(SIGSEGV), NAME(SIGUSR2),  NAME(SIGPIPE), NAME(SIGALRM), NAME(SIGTERM),
                             NAME(SIGCHLD), NAME(SIGCONT),  NAME(SIGSTOP), NAME(SIGTSTP), NAME(SIGTTIN),
                             NAME(SIGTTOU), NAME(SIGURG),   NAME(SIGXCPU), NAME(SIGXFSZ), NAME(SIGVTALRM),
                             NAME(SIGPROF), NAME(SIGWINCH), NAME(SIGIO),   NAME(SIGPWR),  NAME(SIGSYS)};
constexpr Name kClocks[] = {NAME(CLOCK_REALTIME),          NAME(CLOCK_MONOTONIC),     NAME(CLOCK_PROCESS_CPUTIME_ID),
                            NAME(CLOCK_THREAD_CPUTIME_ID), NAME(CLOCK_MONOTONIC_RAW), NAME(CLOCK_REALTIME_COARSE),
                            NAME(CLOCK_MONOTONIC_COARSE),  NAME(CLOCK_BOOTTIME)};
constexpr Name kWhences[] = {NAME(SEEK_SET), NAME(SEEK_CUR), NAME(SEEK_END), NAME(SEEK_DATA), NAME(SEEK_HOLE)};
#undef NAME

#define ERROR(name) {name, #name},
constexpr Name kErrors[] = {
#include "kernel/syscalls/errors.def"
    {kRestart, "ERESTARTSYS"},
    {kRestartNoHandler, "ERESTARTNOHAND"},
};
#undef ERROR

// A call's name and the kinds of its arguments.
struct Call {
  std::uint64_t number;
  std::string_view name;
  std::span<const Kind> kinds;
};

template <Kind... kinds>
struct Kinds {
  static constexpr Kind kList[sizeof...(kinds) + 1] = {kinds..., Kind::number};
  static constexpr std::span<const Kind> kSpan{kList, sizeof...(kinds)};
};

namespace arguments_of {
using enum Kind;
#define ARGUMENTS(name, ...) \
  struct name##_ : Kinds<__VA_ARGS__> {};
#include "kernel/syscalls/arguments.def"
#undef ARGUMENTS
}  // namespace arguments_of

constexpr Kind kUnknownKinds[] = {Kind::hex, Kind::hex, Kind::hex, Kind::hex, Kind::hex, Kind::hex};
constexpr Call kCalls[] = {
#define SYSCALL(number, name, support, note, page) {number, #name, arguments_of::name##_::kSpan},
#define REFUSED(number, name, errno_value, note, page) {number, #name, kUnknownKinds},
#include "kernel/syscalls/syscalls.def"
#undef SYSCALL
#undef REFUSED
};

constexpr std::size_t kTextShown = 32;

void write_flags(std::uint64_t value, std::span<const Name> names, std::string_view none, TextWriter& to) {
  bool is_first = true;
  const auto separate = [&] {
    if (!is_first) to << '|';
    is_first = false;
  };
  for (const Name& flag : names) {
    if ((value & flag.value) != flag.value) continue;
    separate();
    to << flag.name;
    value &= ~flag.value;
  }
  if (value == 0 && is_first) to << none;
  if (value == 0) return;
  separate();
  (to << "0x").hex(value);
}

void write_name(std::uint64_t value, std::span<const Name> names, TextWriter& to) {
  for (const Name& each : names) {
    if (each.value == value) {
      to << each.name;
      return;
    }
  }
  to.decimal(static_cast<std::int64_t>(value));
}

void write_pointer(UserAddress address, TextWriter& to) {
  if (address == 0) {
    to << "NULL";
  } else {
    (to << "0x").hex(address);
  }
}

void write_characters(std::string_view text, TextWriter& to) {
  to << '"';
  for (const char character : text) {
    switch (character) {
      case '\n':
        to << "\\n";
        break;
      case '\t':
        to << "\\t";
        break;
      case '"':
      case '\\':
        to << '\\' << character;
        break;
      default:
        if (character >= ' ' && character <= '~') {
          to << character;
        } else {
          (to << "\\x").hex(static_cast<unsigned char>(character), 2);
        }
    }
  }
  to << '"';
}

// The beginning of `size` bytes of guest memory.
void write_bytes(UserAddress from, std::uint64_t size, TextWriter& to) {
  char text[kTextShown];
  const std::size_t shown = std::min<std::uint64_t>(size, sizeof text);
  if (!copy_in(text, from, shown)) {
    write_pointer(from, to);
    return;
  }
  write_characters({text, shown}, to);
  if (shown < size) to << "...";
}

void write_text(UserAddress from, TextWriter& to) {
  char text[4 * kTextShown];
  const auto size = copy_in_string(text, from, sizeof text);
  if (size) {
    write_characters({text, *size}, to);
  } else if (value_of(size.error()) == ENAMETOOLONG) {
    write_characters({text, sizeof text}, to);
    to << "...";
  } else {
    write_pointer(from, to);
  }
}

void write_time(UserAddress from, TextWriter& to) {
  const auto time = copy_in<timespec>(from);
  if (!time) {
    write_pointer(from, to);
    return;
  }
  (to << '{').decimal(time->tv_sec) << ", ";
  to.decimal(time->tv_nsec) << '}';
}

void write_argument(Kind kind, std::uint64_t value, std::uint64_t next, const SyscallResult* result, TextWriter& to) {
  switch (kind) {
    case Kind::number:
    case Kind::fd:
      to.decimal(static_cast<std::int32_t>(value));
      return;
    case Kind::at:
      if (static_cast<std::int32_t>(value) == AT_FDCWD) {
        to << "AT_FDCWD";
      } else {
        to.decimal(static_cast<std::int32_t>(value));
      }
      return;
    case Kind::size:
      to.number(value);
      return;
    case Kind::octal:
      (to << '0').octal(value & 0xffff'ffff);
      return;
    case Kind::hex:
      (to << "0x").hex(value);
      return;
    case Kind::pointer:
      write_pointer(value, to);
      return;
    case Kind::path:
      write_text(value, to);
      return;
    case Kind::input:
      write_bytes(value, next, to);
      return;
    case Kind::output:
      if (result != nullptr && *result) {
        write_bytes(value, **result, to);
      } else {
        write_pointer(value, to);
      }
      return;
    case Kind::open_flags:
      write_flags(value & 0xffff'ffff, kOpenFlags, "O_RDONLY", to);
      return;
    case Kind::protection:
      write_flags(value, kProtections, "PROT_NONE", to);
      return;
    case Kind::map_flags:
      write_flags(value, kMapFlags, "0", to);
      return;
    case Kind::signal:
      write_name(value, kSignals, to);
      return;
    case Kind::clock:
      write_name(value, kClocks, to);
      return;
    case Kind::whence:
      write_name(value, kWhences, to);
      return;
    case Kind::time:
      write_time(value, to);
      return;
  }
}

void write_result(const SyscallResult& result, TextWriter& to) {
  to << " = ";
  if (result) {
    const std::uint64_t value = *result;
    constexpr std::uint64_t kAddresses = 0x1'0000'0000;
    if (value < kAddresses) {
      to.number(value);
    } else {
      (to << "0x").hex(value);
    }
    return;
  }
  to << "-1 ";
  write_name(static_cast<std::uint64_t>(value_of(result.error())), kErrors, to);
}

}  // namespace

bool is_traced_before(std::uint64_t number) {
  switch (number) {
    case SYS_execve:
    case SYS_execveat:
    case SYS_exit:
    case SYS_exit_group:
    case SYS_rt_sigreturn:
      return true;
    default:
      return false;
  }
}

void trace_call(std::uint64_t number, const SyscallArguments& arguments, const SyscallResult* result) {
  char line[kTraceLineMax];
  TextWriter to(line, sizeof line);
  (to << '[').decimal(current().tid) << "] ";
  const auto* const call =
      std::find_if(std::begin(kCalls), std::end(kCalls), [&](const Call& each) { return each.number == number; });
  const bool is_known = call != std::end(kCalls);
  if (is_known) {
    to << call->name << '(';
  } else {
    (to << "syscall_").number(number) << '(';
  }
  const std::span<const Kind> kinds = is_known ? call->kinds : std::span<const Kind>(kUnknownKinds);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) to << ", ";
    write_argument(kinds[i], arguments.values[i], i < 5 ? arguments.values[i + 1] : 0, result, to);
  }
  to << ')';
  if (result != nullptr) write_result(*result, to);
  trace_line(to.text());
}

}  // namespace belljar::kernel
