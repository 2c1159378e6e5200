// Comparing files.
#pragma once

namespace belljar {

// Whether two regular files, open for reading, hold the same bytes. False also where one can't be read.
bool have_same_content(int fd, int other_fd);

}  // namespace belljar
