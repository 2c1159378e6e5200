// Interpreters that were compiled to WebAssembly and installed beside Belljar.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace belljar::wasm {

struct Interpreter {
  std::string_view extension;
  std::string_view name;      // belljar-NAME.cwasm beside this program, belljar-NAME.wasm too
  std::string_view argument;  // its own argv[0]
  std::string_view option;    // before the script; empty: none
  std::string_view library;   // a file beside it, seen below kLibraryFolder; empty: it needs none
};

// Python's main.c knows it too.
inline constexpr const char* kLibraryFolder = "/.belljar/lib";

// The rows; one interpreter may have several.
std::span<const Interpreter> interpreters();

// By the script's name; null for a name that is no script's.
const Interpreter* find_interpreter(std::string_view script);

// Whether the file there begins as a module does. Such a file is one, whatever it is called.
bool is_module(const std::string& path);

// What runs the script; null for a module, and for what no interpreter is here for.
const Interpreter* interpreter_of(const std::string& script);

// ".js, .mjs", for errors.
std::string known_extensions();

}  // namespace belljar::wasm
