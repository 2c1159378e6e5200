"""WSM-02: change a read-only folder from a module, by every call that WASI has for it. Nothing of it may change."""

import hashlib
import os
from pathlib import Path

from harness import callers, main
from modules import WasmTest, wasm_modules

# Calls WASI itself, past what the C library would check. Each prints a digit: the errno, 0 where it was done.
PROBE = r"""
#include <stdio.h>
#include <string.h>
#include <wasi/api.h>
static __wasi_fd_t find(const char* name) {
  for (__wasi_fd_t fd = 3;; ++fd) {
    __wasi_prestat_t stat;
    if (__wasi_fd_prestat_get(fd, &stat)) return -1;
    char path[64] = {0};
    __wasi_fd_prestat_dir_name(fd, (uint8_t*)path, stat.u.dir.pr_name_len);
    if (!strcmp(path, name)) return fd;
  }
}
int main() {
  __wasi_fd_t data = find("/data"), tmp = find("/tmp"), fd = 0;
  uint64_t all = ~0ull;
  printf("truncate %d\n", __wasi_path_open(data, 1, "file", __WASI_OFLAGS_TRUNC, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
  printf("write %d\n", __wasi_path_open(data, 1, "file", 0, all, all, 0, &fd));
  printf("create %d\n", __wasi_path_open(data, 1, "new", __WASI_OFLAGS_CREAT, all, all, 0, &fd));
  int read = __wasi_path_open(data, 1, "file", 0, __WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_FILESTAT_SET_TIMES, 0, 0, &fd);
  if (read) return 1;
  __wasi_ciovec_t text = {(const uint8_t*)"x", 1};
  size_t n;
  printf("read-write %d\n", __wasi_fd_write(fd, &text, 1, &n));
  printf("pwrite %d\n", __wasi_fd_pwrite(fd, &text, 1, 0, &n));
  printf("set_size %d\n", __wasi_fd_filestat_set_size(fd, 0));
  printf("allocate %d\n", __wasi_fd_allocate(fd, 0, 100));
  printf("fd_times %d\n", __wasi_fd_filestat_set_times(fd, 1, 1, 5));
  printf("times %d\n", __wasi_path_filestat_set_times(data, 1, "file", 1, 1, 5));
  printf("link %d\n", __wasi_path_link(data, 0, "file", data, "hard"));
  printf("rename %d\n", __wasi_path_rename(data, "file", data, "moved"));
  printf("symlink %d\n", __wasi_path_symlink("file", data, "soft"));
  printf("mkdir %d\n", __wasi_path_create_directory(data, "made"));
  printf("rmdir %d\n", __wasi_path_remove_directory(data, "sub"));
  printf("link out %d\n", __wasi_path_link(data, 0, "sub/inner", tmp, "hard"));
  printf("rename over %d\n", __wasi_path_open(tmp, 0, "own", __WASI_OFLAGS_CREAT, all, all, 0, &fd) ||
                             __wasi_path_rename(tmp, "own", data, "sub/inner"));
  printf("unlink %d\n", __wasi_path_unlink_file(data, "sub/inner"));
  return 0;
}
"""


def snapshot(folder: Path) -> list:
    found = []
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found.append((str(path), status.st_mode, status.st_nlink, status.st_size, status.st_mtime_ns, digest))
    return found


class Wsm02(WasmTest):
    def attempt(self, caller, access: str) -> tuple[dict, bool]:
        """What each call answered, and whether the folder is as it was."""
        folder = self.host_folder(f"data-{access}-{caller}", caller)
        (folder / "sub").mkdir()
        for name in ("file", "sub/inner"):
            (folder / name).write_text("content")
        for path in folder.rglob("*"):
            os.chown(path, caller.uid, caller.uid)
        before = snapshot(folder)
        result = self.wasm(wasm_modules.from_c(PROBE), ["--mount", f"{folder}:/data:{access}"], caller)
        self.assertEqual(result.record["exit_code"], 0, result)
        answers = dict(line.rsplit(" ", 1) for line in result.stdout.splitlines())
        self.assertEqual(len(answers), 17, answers)
        return answers, snapshot(folder) == before

    def test_positive_control(self) -> None:
        """Where the folder may be written to, the calls do change it."""
        for caller in callers():
            answers, is_same = self.attempt(caller, "rw")
            self.assertFalse(is_same)
            done = {name for name, answer in answers.items() if answer == "0"}
            self.assertLessEqual({"truncate", "write", "create", "times", "fd_times", "link", "rename", "symlink", "mkdir"}, done)

    def test_nothing_changes(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                answers, is_same = self.attempt(caller, "ro")
                self.assertTrue(is_same)
                self.assertNotIn("0", answers.values(), answers)


if __name__ == "__main__":
    main()
