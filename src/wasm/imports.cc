#include "wasm/imports.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "wasm/wasi_calls.h"

namespace belljar::wasm {
namespace {

constexpr std::string_view kModule = "wasi_snapshot_preview1";

using Callback = wasm_trap_t* (*)(void*, wasmtime_caller_t*, wasmtime_val_raw_t*, std::size_t);

template <typename T>
T argument(const wasmtime_val_raw_t& raw) {
  if constexpr (std::is_same_v<T, std::uint64_t>) return static_cast<T>(raw.i64);
  return static_cast<T>(static_cast<std::uint32_t>(raw.i32));
}

GuestMemory memory_of(wasmtime_caller_t* caller) {
  wasmtime_extern_t found;
  constexpr std::string_view kName = "memory";
  if (!wasmtime_caller_export_get(caller, kName.data(), kName.size(), &found)) return {};
  if (found.kind != WASMTIME_EXTERN_MEMORY) return {};
  wasmtime_context_t* const context = wasmtime_caller_context(caller);
  return GuestMemory({reinterpret_cast<std::byte*>(wasmtime_memory_data(context, &found.of.memory)),
                      wasmtime_memory_data_size(context, &found.of.memory)});
}

// Null while the module goes on.
wasm_trap_t* stop_if_exited(const Wasi& wasi) {
  constexpr std::string_view kExit = "the module has exited";
  return wasi.exit_code() ? wasmtime_trap_new(kExit.data(), kExit.size()) : nullptr;
}

// A call as the engine makes it: arguments and result lie in one array.
template <auto Call>
struct Import;

template <typename Answer, typename... Parameters, Answer (*Call)(Wasi&, Parameters...)>
struct Import<Call> {
  static constexpr bool kAnswers = !std::is_void_v<Answer>;
  static constexpr std::array<wasm_valkind_t, sizeof...(Parameters)> kParameters = {
      (std::is_same_v<Parameters, std::uint64_t> ? WASM_I64 : WASM_I32)...};

  static wasm_trap_t* call(void* data, wasmtime_caller_t* caller, wasmtime_val_raw_t* raw, std::size_t) {
    Wasi& wasi = *static_cast<Wasi*>(data);
    wasi.set_memory(memory_of(caller));
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      if constexpr (kAnswers) {
        raw[0].i32 = static_cast<std::int32_t>(Call(wasi, argument<Parameters>(raw[Index])...));
      } else {
        Call(wasi, argument<Parameters>(raw[Index])...);
      }
    }(std::index_sequence_for<Parameters...>());
    return stop_if_exited(wasi);
  }
};

struct ImportRow {
  std::string_view name;
  Callback call;
  std::span<const wasm_valkind_t> parameters;
  bool answers;
};

constexpr ImportRow kImports[] = {
#define WASI_CALL(name) \
  {#name, Import<&calls::name>::call, Import<&calls::name>::kParameters, Import<&calls::name>::kAnswers},
#include "wasm/wasi_calls.def"
#undef WASI_CALL
};

wasm_functype_t* make_type(const ImportRow& row) {
  wasm_valtype_vec_t parameters;
  wasm_valtype_vec_new_uninitialized(&parameters, row.parameters.size());
  for (std::size_t i = 0; i < row.parameters.size(); ++i) parameters.data[i] = wasm_valtype_new(row.parameters[i]);
  wasm_valtype_vec_t results;
  wasm_valtype_vec_new_uninitialized(&results, row.answers ? 1 : 0);
  if (row.answers) results.data[0] = wasm_valtype_new(WASM_I32);
  return wasm_functype_new(&parameters, &results);
}

bool has_type(const ImportRow& row, const wasm_functype_t* type) {
  const wasm_valtype_vec_t* const parameters = wasm_functype_params(type);
  if (parameters->size != row.parameters.size()) return false;
  for (std::size_t i = 0; i < parameters->size; ++i) {
    if (wasm_valtype_kind(parameters->data[i]) != row.parameters[i]) return false;
  }
  const wasm_valtype_vec_t* const results = wasm_functype_results(type);
  if (results->size != (row.answers ? 1U : 0U)) return false;
  return !row.answers || wasm_valtype_kind(results->data[0]) == WASM_I32;
}

}  // namespace

void define_imports(wasmtime_linker_t* linker, Wasi& wasi) {
  for (const ImportRow& row : kImports) {
    wasm_functype_t* const type = make_type(row);
    // It fails for a name that is defined already; each is one row.
    (void)wasmtime_linker_define_func_unchecked(linker, kModule.data(), kModule.size(), row.name.data(),
                                                row.name.size(), type, row.call, &wasi, nullptr);
    wasm_functype_delete(type);
  }
}

bool has_import(std::string_view module, std::string_view name, const wasm_externtype_t* type) {
  const wasm_functype_t* const function = wasm_externtype_as_functype_const(type);
  if (module != kModule || function == nullptr) return false;
  for (const ImportRow& row : kImports) {
    if (row.name == name) return has_type(row, function);
  }
  return false;
}

}  // namespace belljar::wasm
