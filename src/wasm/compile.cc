#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"
#include "base/utf8.h"
#include "seccomp/filter.h"
#include "wasm/confine_self.h"
#include "wasm/engine.h"
#include "wasm/imports.h"
#include "wasm/settings.h"

namespace belljar::wasm {
namespace {

constexpr std::size_t kModuleBytesMax = std::size_t{1} << 30;
constexpr std::size_t kStackBytes = std::size_t{1} << 20;  // nothing runs

Report refuse(Ending ending, std::string message) {
  return {.ending = ending, .message = std::move(message)};
}

std::string quoted(std::string_view name) {
  constexpr std::size_t kNameBytesShown = 80;
  return quote(name, kNameBytesShown);
}

// What the first bytes say of a file that this engine has no use for; nothing of a core module.
std::optional<Report> refuse_by_head(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (!bytes.starts_with("\0asm"sv)) {
    return refuse(Ending::bad_module, "it does not begin as a WebAssembly module does");
  }
  constexpr std::size_t kHeadBytes = 8;
  if (bytes.size() < kHeadBytes) return refuse(Ending::bad_module, "it is cut short: it ends within its first 8 bytes");
  const std::string_view version = bytes.substr(4, 4);
  if (version == "\1\0\0\0"sv) return std::nullopt;
  if (version.substr(2) == "\1\0"sv) {
    return refuse(
        Ending::wrong_wasi,
        "it is a component (WASI preview 2); this tier runs core modules of WASI preview 1, such as the target "
        "wasm32-wasip1 makes");
  }
  return refuse(Ending::bad_module, "it has a version of WebAssembly that this engine does not know");
}

enum class StartIs { missing, unusable, there };

StartIs look_for_start(const wasm_exporttype_vec_t& exports) {
  for (std::size_t i = 0; i < exports.size; ++i) {
    if (text_of(*wasm_exporttype_name(exports.data[i])) != "_start") continue;
    const wasm_functype_t* const type = wasm_externtype_as_functype_const(wasm_exporttype_type(exports.data[i]));
    if (type == nullptr) return StartIs::missing;
    const bool is_plain = wasm_functype_params(type)->size == 0 && wasm_functype_results(type)->size == 0;
    return is_plain ? StartIs::there : StartIs::unusable;
  }
  return StartIs::missing;
}

std::optional<Report> refuse_by_exports(const wasmtime_module_t* module) {
  wasm_exporttype_vec_t exports;
  wasmtime_module_exports(module, &exports);
  const StartIs start = look_for_start(exports);
  wasm_exporttype_vec_delete(&exports);
  if (start == StartIs::there) return std::nullopt;
  return refuse(Ending::bad_module,
                start == StartIs::unusable
                    ? "its function _start takes or returns values, which that of a program does not"
                    : "it exports no function _start, so it is a library and no program");
}

std::optional<Report> refuse_by_imports(const wasmtime_module_t* module) {
  constexpr std::size_t kNamesShown = 3;
  wasm_importtype_vec_t imports;
  wasmtime_module_imports(module, &imports);
  std::string names;
  std::size_t missing = 0;
  bool is_old = false;
  for (std::size_t i = 0; i < imports.size; ++i) {
    const wasm_importtype_t* const import = imports.data[i];
    const std::string from = text_of(*wasm_importtype_module(import));
    const std::string name = text_of(*wasm_importtype_name(import));
    is_old = is_old || from == "wasi_unstable";
    if (has_import(from, name, wasm_importtype_type(import))) continue;
    if (missing++ < kNamesShown)
      names += fmt::format("{}{} from {}", names.empty() ? "" : ", ", quoted(name), quoted(from));
  }
  wasm_importtype_vec_delete(&imports);
  if (is_old) {
    return refuse(Ending::wrong_wasi,
                  "it is made for WASI preview 0 (wasi_unstable); this tier runs modules of WASI preview 1");
  }
  if (missing == 0) return std::nullopt;
  if (missing > kNamesShown) names += fmt::format(" and {} more", missing - kNamesShown);
  return refuse(Ending::missing_import,
                fmt::format("it imports what is not handed to it: {}; only functions of WASI preview 1 are", names));
}

Report write_out(const wasmtime_module_t* module, std::uint64_t bytes_max) {
  wasm_byte_vec_t bytes;
  if (const ErrorHandle error(wasmtime_module_serialize(module, &bytes)); error) {
    return refuse(Ending::bad_module, one_line(message_of(error.get())));
  }
  const std::string_view text(bytes.data, bytes.size);
  if (text.size() > bytes_max) {
    return refuse(Ending::bad_module,
                  fmt::format("compiled it has {} bytes; at most {} are kept", text.size(), bytes_max));
  }
  const bool is_written = write_all(STDOUT_FILENO, text).has_value();
  wasm_byte_vec_delete(&bytes);
  if (!is_written) return refuse(Ending::unusable, "the result could not be written");
  return {.ending = Ending::compiled};
}

}  // namespace

Report compile(const CompileJob& job) {
  const auto bytes = read_file_at(AT_FDCWD, job.path.c_str(), kModuleBytesMax);
  if (!bytes) return refuse(Ending::bad_module, errno_text(bytes.error().value));
  if (auto refused = refuse_by_head(*bytes)) return *refused;
  const EngineHandle engine = make_engine(job.fuel, job.code_for, kStackBytes);
  confine_self(wasm_compile_profile());
  wasmtime_module_t* made = nullptr;
  const ErrorHandle error(
      wasmtime_module_new(engine.get(), reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size(), &made));
  if (error) return refuse(Ending::bad_module, one_line(message_of(error.get())));
  const ModuleHandle module(made);
  if (auto refused = refuse_by_imports(module.get())) return *refused;
  if (auto refused = refuse_by_exports(module.get())) return *refused;
  return write_out(module.get(), job.bytes_max);
}

}  // namespace belljar::wasm
