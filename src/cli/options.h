// Command line options, read with tables and without a library: a sandbox starts in about 2 ms, and the usual library
// took 0.2 ms of that (measured: 0.09 ms to build its option objects, the rest in start-up code that comes with it).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace belljar {

// How often an option that takes a value may be given.
enum class Times { once, any };

// `name` is without dashes; a name of one letter is written with one dash. `argument` is what it takes, for help and
// errors; empty: it takes nothing.
struct Option {
  std::string_view name;
  std::string_view argument;
  std::string_view what;
  Times times = Times::once;
};

// "--memory", "-e".
std::string written_option(std::string_view name);

struct GivenOption {
  std::size_t option;      // index into the table
  std::string_view value;  // empty for options that take nothing
};

// Views into the arguments.
struct ParsedOptions {
  std::vector<GivenOption> given;
  std::span<char* const> operands;  // from the first argument that is no option, or everything after "--"
  bool after_dashes = false;        // the operands came after "--"
  std::optional<Error> error;       // the first mistake; reading goes on, so that e.g. --json is known for the report
};

// Reads options up to the first operand or "--". Takes "--name value", "--name=value", "-n value" and "-nvalue". Two
// values where one belongs are a mistake: which of them is meant is not said.
ParsedOptions parse_options(std::span<const Option> options, std::span<char* const> arguments);

// The arguments with the options first, for commands that take them after their operands too. What comes after "--"
// stays there.
std::vector<char*> options_first(std::span<const Option> options, std::span<char* const> arguments);

bool is_given(const ParsedOptions& parsed, std::size_t option);

// What follows the name of a command that takes a word of its own, such as `changes list`. Views into the arguments.
struct WordArguments {
  std::string_view word;  // empty where an option comes first, or nothing
  std::vector<char*> ordered;
  ParsedOptions parsed;
};
WordArguments parse_word(std::span<const Option> options, std::span<char* const> arguments);

// Lines of help: each option with its argument, then `what`, wrapped.
std::string options_help(std::span<const Option> options);

}  // namespace belljar
