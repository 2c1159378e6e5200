// The host's half of WASI preview 1 for one module: its files, arguments and environment, and how it asked to end.
// The calls themselves are in wasi_calls.h. One thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "wasm/guest_memory.h"
#include "wasm/wasi_abi.h"

namespace belljar::wasm {

struct OpenFile {
  Fd owned;
  FileKind kind = FileKind::unknown;
  std::uint64_t rights = 0;
  std::uint64_t rights_inheriting = 0;
  std::string preopened_as;  // of a folder that was handed over: its path for the module

  int fd() const { return owned.get(); }
};

class Wasi {
 public:
  Wasi(std::vector<std::string> arguments, std::vector<std::string> environment)
      : arguments_(std::move(arguments)), environment_(std::move(environment)) {}

  // Takes the process's own standard streams as 0, 1 and 2.
  void add_standard_streams();

  // Hands the folder over, under its own path. Errors: as open(2).
  SysResult<void> add_folder(const std::string& path);

  const std::vector<std::string>& arguments() const { return arguments_; }
  const std::vector<std::string>& environment() const { return environment_; }

  // Null where the module has no such descriptor.
  OpenFile* find(std::uint32_t fd);
  std::expected<OpenFile*, WasiErrno> find_with(std::uint32_t fd, std::uint64_t rights);
  // The lowest number that is free. Errors: mfile.
  std::expected<std::uint32_t, WasiErrno> add(OpenFile file);
  bool close(std::uint32_t fd);
  // `to` becomes what `from` was. False where one of them is not open.
  bool renumber(std::uint32_t from, std::uint32_t to);

  // Of the call that is under way.
  const GuestMemory& memory() const { return memory_; }
  void set_memory(GuestMemory memory) { memory_ = memory; }

  // The module ends with the call that is under way.
  void exit(std::uint32_t code) { exit_code_ = code; }
  std::optional<std::uint32_t> exit_code() const { return exit_code_; }

 private:
  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
  std::vector<std::optional<OpenFile>> files_;
  GuestMemory memory_;
  std::optional<std::uint32_t> exit_code_;
};

}  // namespace belljar::wasm
