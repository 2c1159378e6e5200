// Which program runs a script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace belljar {

// How many of a script's first bytes the choice looks at. The kernel looks at as many: execve(2), "Interpreter
// scripts".
inline constexpr std::size_t kScriptHeadBytes = 256;

// What decides where a script has both a known extension and a #! line. Extensions stand for what the host has; an
// image may have another shell, or its interpreters elsewhere.
enum class ScriptRule { extension_first, hash_bang_first };

// The path that a script is called by. For one that is handed over as a descriptor (/proc/self/fd/N or /dev/fd/N,
// proc(5)) that is the path of the file that is open there, or the name that was given to memfd_create(2); else it is
// `path`.
std::string script_name(const std::string& path);

// What stands before the script's path in argv: {"python3"}, or what its #! line names, such as {"/usr/bin/env",
// "python3"}. `head` is the file's first bytes
// (kScriptHeadBytes, or fewer when the file is shorter). The error (bad_script, one line) says what would be right.
Result<std::vector<std::string>> choose_interpreter(std::string_view script_name, std::string_view head,
                                                    ScriptRule rule = ScriptRule::extension_first);

}  // namespace belljar
