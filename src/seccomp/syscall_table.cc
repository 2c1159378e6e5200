#include "seccomp/syscall_table.h"

#include <linux/audit.h>

#include <algorithm>

namespace belljar {
namespace {

constexpr Syscall kX8664[] = {
#define SYSCALL(number, name, arguments) {number, #name, arguments},
#include "seccomp/syscalls_x86_64.def"
#undef SYSCALL
};
static_assert(std::ranges::adjacent_find(kX8664, std::ranges::greater_equal{}, &Syscall::number) == std::end(kX8664),
              "the rows of syscalls_x86_64.def ascend");

constexpr SyscallTable kX8664Table{AUDIT_ARCH_X86_64, kX8664};

}  // namespace

const SyscallTable& x86_64_syscalls() {
  return kX8664Table;
}

const Syscall* find_syscall(const SyscallTable& table, std::string_view name) {
  const auto found = std::ranges::find(table.syscalls, name, &Syscall::name);
  return found == table.syscalls.end() ? nullptr : &*found;
}

bool find_argument(const Syscall& syscall, std::string_view name, SyscallArgument& argument) {
  std::string_view rest = syscall.arguments;
  for (std::uint8_t position = 0; !rest.empty(); ++position) {
    const std::string_view item = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t colon = item.find(':');
    if (item.substr(0, colon) != name) continue;
    const std::string_view width = item.substr(colon + 1);
    argument = {position, static_cast<std::uint8_t>(width == "16" ? 16 : width == "32" ? 32 : 64)};
    return true;
  }
  return false;
}

}  // namespace belljar
