// What belljar-wasm says of how it ended, on kReportFd. Who reads it treats it as hostile: a module may have taken the
// process over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace belljar::wasm {

// Of the program belljar-wasm, beside its standard streams.
inline constexpr int kReportFd = 3;

// ENDING(name): how a module, or the compiling of one, ended.
enum class Ending : std::uint8_t {
  exited,          // by proc_exit or by returning from _start
  trapped,         // by a fault of its own
  out_of_fuel,     // all of RunJob::fuel is used
  out_of_memory,   // asked for more than RunJob::memory_bytes
  compiled,        // the compiled module has been written to standard output
  bad_module,      // it is no module, or one that the engine can't compile
  wrong_wasi,      // it is a module for another kind of host
  missing_import,  // it imports what no host has
  unusable,        // the compiled module is not one of this engine
  no_addresses,    // this process may not have the address space that a memory takes
};
inline constexpr auto kEndingLast = Ending::no_addresses;

struct Report {
  Ending ending = Ending::exited;
  std::uint32_t exit_code = 0;     // of Ending::exited
  std::uint64_t fuel_used = 0;     // 0 where it is not counted
  std::uint64_t memory_bytes = 0;  // linear memory and tables at the end; none is ever given back
  std::string message;             // one line, of the bad_... endings
};

inline constexpr std::size_t kReportBytesMax = 2048;

// At most kReportBytesMax; a longer message is cut.
std::string encode(const Report& report);

// Nothing where the bytes are no report.
std::optional<Report> decode_report(std::string_view bytes);

}  // namespace belljar::wasm
