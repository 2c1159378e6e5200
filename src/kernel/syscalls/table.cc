#include "kernel/syscalls/table.h"

#include <errno.h>

#include <array>

namespace belljar::kernel {
namespace {

constexpr std::size_t kNumbers = 512;

struct Row {
  SyscallFunction function = nullptr;
  int errno_value = ENOSYS;
};

// Filled by the linker's relocations of constants; nothing runs before the first call.
constexpr std::array<Row, kNumbers> make_rows() {
  std::array<Row, kNumbers> rows{};
#define SYSCALL(number, name, support, note, page) rows[number].function = sys_##name;
#define REFUSED(number, name, code, note, page) rows[number].errno_value = code;
#include "kernel/syscalls/syscalls.def"
#undef SYSCALL
#undef REFUSED
  return rows;
}

constinit const std::array<Row, kNumbers> kRows = make_rows();

}  // namespace

SyscallResult call_by_number(std::uint64_t number, const SyscallArguments& arguments) {
  if (number >= kNumbers) return error(ENOSYS);
  const Row& row = kRows[number];
  return row.function == nullptr ? SyscallResult(error(row.errno_value)) : row.function(arguments);
}

}  // namespace belljar::kernel
