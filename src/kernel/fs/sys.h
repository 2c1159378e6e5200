// /sys: as much of sysfs(5) as programs look at to learn how many CPUs and how much memory they have.
#pragma once

#include "kernel/fs/generated.h"

namespace belljar::kernel {

SysResult<Ref<Inode>> make_sys_file_system();

}  // namespace belljar::kernel
