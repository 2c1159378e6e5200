// `belljar policy check`: would a policy let a program reach a URL?
#pragma once

#include <span>
#include <string>

namespace belljar {

// `arguments` are those after "policy check". Returns the exit status: 0 allowed, 1 refused, 125 a mistake in the call.
int policy_check_command(std::span<char* const> arguments);

}  // namespace belljar
