#include "cli/commands.h"

int main(int argc, char** argv) {
  const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
  return belljar::command_line(arguments.subspan(arguments.empty() ? 0 : 1));  // argv may be empty: execve(2)
}
