// The commands of the command line.
#pragma once

#include <span>
#include <string>

namespace belljar {

// Runs the command that `arguments` name (argv without the program's name). Returns the exit status.
int command_line(std::span<char* const> arguments);

// `belljar --help`: fits on a screen of 30 lines and 80 columns.
std::string main_help();

}  // namespace belljar
