// What belljar-wasm is asked for, as its command line. The tier writes it, the process reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace belljar::wasm {

inline constexpr const char* kProgramName = "belljar-wasm";

// Whether compiled code counts fuel. Both kinds of code are kept apart.
enum class FuelIs : std::uint8_t { not_counted, counted };

// Which processors compiled code can run on: the one that compiles it, or any that has x86-64-v2, as all since 2009
// have.
enum class CodeFor : std::uint8_t { this_processor, any_processor };

// Compile the module at `path`: the result goes to standard output.
struct CompileJob {
  std::string path;
  FuelIs fuel = FuelIs::not_counted;
  CodeFor code_for = CodeFor::this_processor;
  std::uint64_t bytes_max = 0;  // of the result

  std::vector<std::string> to_arguments() const;
  static std::optional<CompileJob> from_arguments(const std::vector<std::string>& arguments);
};

// Run the compiled module at `path`.
struct RunJob {
  std::string path;
  std::optional<std::uint64_t> fuel;   // nothing: it is not counted
  std::uint64_t memory_bytes = 0;      // of linear memory and tables together
  std::vector<std::string> folders;    // handed over, each under its own path
  std::vector<std::string> variables;  // of the module: NAME=value; the process itself has none
  std::vector<std::string> arguments;  // of the module, with its name

  std::vector<std::string> to_arguments() const;
  static std::optional<RunJob> from_arguments(const std::vector<std::string>& arguments);
};

}  // namespace belljar::wasm
