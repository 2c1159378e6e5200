// The calls of wasi_snapshot_preview1, under their own names and with their own parameters: i32 is std::uint32_t, i64
// std::uint64_t; addresses are the module's. What each does is the specification's to say.
#pragma once

#include <cstdint>

#include "wasm/wasi.h"

namespace belljar::wasm::calls {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// wasi_process.cc
WasiErrno args_get(Wasi& wasi, u32 pointers, u32 texts);
WasiErrno args_sizes_get(Wasi& wasi, u32 count, u32 bytes);
WasiErrno environ_get(Wasi& wasi, u32 pointers, u32 texts);
WasiErrno environ_sizes_get(Wasi& wasi, u32 count, u32 bytes);
void proc_exit(Wasi& wasi, u32 code);
WasiErrno proc_raise(Wasi& wasi, u32 signal);
WasiErrno random_get(Wasi& wasi, u32 buffer, u32 size);
WasiErrno sched_yield(Wasi& wasi);
WasiErrno sock_accept(Wasi& wasi, u32 fd, u32 flags, u32 out);
WasiErrno sock_recv(Wasi& wasi, u32 fd, u32 vectors, u32 count, u32 flags, u32 size_out, u32 flags_out);
WasiErrno sock_send(Wasi& wasi, u32 fd, u32 vectors, u32 count, u32 flags, u32 size_out);
WasiErrno sock_shutdown(Wasi& wasi, u32 fd, u32 how);

// wasi_time.cc
WasiErrno clock_res_get(Wasi& wasi, u32 clock, u32 out);
WasiErrno clock_time_get(Wasi& wasi, u32 clock, u64 precision, u32 out);
WasiErrno poll_oneoff(Wasi& wasi, u32 subscriptions, u32 events, u32 count, u32 count_out);

// wasi_files.cc
WasiErrno fd_advise(Wasi& wasi, u32 fd, u64 offset, u64 size, u32 advice);
WasiErrno fd_allocate(Wasi& wasi, u32 fd, u64 offset, u64 size);
WasiErrno fd_close(Wasi& wasi, u32 fd);
WasiErrno fd_datasync(Wasi& wasi, u32 fd);
WasiErrno fd_fdstat_get(Wasi& wasi, u32 fd, u32 out);
WasiErrno fd_fdstat_set_flags(Wasi& wasi, u32 fd, u32 flags);
WasiErrno fd_fdstat_set_rights(Wasi& wasi, u32 fd, u64 base, u64 inheriting);
WasiErrno fd_filestat_get(Wasi& wasi, u32 fd, u32 out);
WasiErrno fd_filestat_set_size(Wasi& wasi, u32 fd, u64 size);
WasiErrno fd_filestat_set_times(Wasi& wasi, u32 fd, u64 access_ns, u64 modify_ns, u32 flags);
WasiErrno fd_pread(Wasi& wasi, u32 fd, u32 vectors, u32 count, u64 offset, u32 size_out);
WasiErrno fd_prestat_dir_name(Wasi& wasi, u32 fd, u32 buffer, u32 size);
WasiErrno fd_prestat_get(Wasi& wasi, u32 fd, u32 out);
WasiErrno fd_pwrite(Wasi& wasi, u32 fd, u32 vectors, u32 count, u64 offset, u32 size_out);
WasiErrno fd_read(Wasi& wasi, u32 fd, u32 vectors, u32 count, u32 size_out);
WasiErrno fd_readdir(Wasi& wasi, u32 fd, u32 buffer, u32 size, u64 cookie, u32 size_out);
WasiErrno fd_renumber(Wasi& wasi, u32 from, u32 to);
WasiErrno fd_seek(Wasi& wasi, u32 fd, u64 offset, u32 whence, u32 out);
WasiErrno fd_sync(Wasi& wasi, u32 fd);
WasiErrno fd_tell(Wasi& wasi, u32 fd, u32 out);
WasiErrno fd_write(Wasi& wasi, u32 fd, u32 vectors, u32 count, u32 size_out);

// wasi_paths.cc
WasiErrno path_create_directory(Wasi& wasi, u32 fd, u32 path, u32 size);
WasiErrno path_filestat_get(Wasi& wasi, u32 fd, u32 lookup, u32 path, u32 size, u32 out);
WasiErrno path_filestat_set_times(Wasi& wasi, u32 fd, u32 lookup, u32 path, u32 size, u64 access_ns, u64 modify_ns,
                                  u32 flags);
WasiErrno path_link(Wasi& wasi, u32 fd, u32 lookup, u32 path, u32 size, u32 new_fd, u32 new_path, u32 new_size);
WasiErrno path_open(Wasi& wasi, u32 fd, u32 lookup, u32 path, u32 size, u32 open_flags, u64 rights_base,
                    u64 rights_inheriting, u32 fd_flags, u32 out);
WasiErrno path_readlink(Wasi& wasi, u32 fd, u32 path, u32 size, u32 buffer, u32 buffer_size, u32 size_out);
WasiErrno path_remove_directory(Wasi& wasi, u32 fd, u32 path, u32 size);
WasiErrno path_rename(Wasi& wasi, u32 fd, u32 path, u32 size, u32 new_fd, u32 new_path, u32 new_size);
WasiErrno path_symlink(Wasi& wasi, u32 text, u32 text_size, u32 fd, u32 path, u32 size);
WasiErrno path_unlink_file(Wasi& wasi, u32 fd, u32 path, u32 size);

}  // namespace belljar::wasm::calls
