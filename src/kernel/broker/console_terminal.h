// With --tty: the terminal that is the program's standard streams. Its line discipline and its job control are this
// kernel's; between its master's side and the caller's terminal the broker moves bytes as they are.
#pragma once

#include "kernel/base/result.h"
#include "kernel/fs/file.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

// Makes it, for the user of the program. Once, at boot, where shm::Boot says that there is one.
SysResult<void> make_console_terminal(std::uint32_t uid, std::uint32_t gid);
bool has_console_terminal();

// The program's side of it.
SysResult<Ref<File>> open_console_terminal();
// For the first process, which leads a session: it becomes its controlling terminal.
void take_console_terminal();

// For the helper thread that the broker and the terminal wake: moves what there is to move, both ways, and gives the
// terminal the size of the caller's.
void move_console_terminal();

// The program has ended: the helper reports it once what was printed is on its way. Tasks lock held.
void end_after_console_terminal(std::uint32_t kind, std::int32_t code);

}  // namespace belljar::kernel
