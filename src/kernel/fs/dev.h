// /dev: the devices that every program expects, none of them of the host.
#pragma once

#include "kernel/fs/generated.h"

namespace belljar::kernel {

// With empty folders "pts" and "shm" to mount over.
SysResult<Ref<Inode>> make_dev_file_system();

}  // namespace belljar::kernel
