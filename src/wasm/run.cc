#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/fd.h"
#include "wasm/confine_self.h"
#include "wasm/engine.h"
#include "wasm/engine/belljar_engine.h"
#include "wasm/imports.h"
#include "wasm/settings.h"
#include "wasm/wasi.h"

namespace belljar::wasm {
namespace {

constexpr std::size_t kCompiledBytesMax = std::size_t{1} << 31;

// Half of it is the module's; the engine and the host's calls need the rest. So much, that an interpreter comes to its
// own limit first, which a script can catch.
std::size_t grow_stack() {
  constexpr rlim_t kWanted = rlim_t{64} << 20;
  rlimit stack{};
  ::getrlimit(RLIMIT_STACK, &stack);
  stack.rlim_cur = std::min(kWanted, stack.rlim_max);
  ::setrlimit(RLIMIT_STACK, &stack);
  return stack.rlim_cur / 2;
}

// By its path the file is mapped, and read only where the module runs; from a place that forbids executable mappings
// (mount(8), noexec) it is copied, and then the module's data are as well.
ModuleHandle load(wasm_engine_t* engine, const std::string& path, std::string* why_not) {
  wasmtime_module_t* module = nullptr;
  const ErrorHandle mapped(wasmtime_module_deserialize_file(engine, path.c_str(), &module));
  if (!mapped) return ModuleHandle(module);
  *why_not = one_line(message_of(mapped.get()));
  const auto bytes = read_file_at(AT_FDCWD, path.c_str(), kCompiledBytesMax);
  if (!bytes) return nullptr;
  const ErrorHandle copied(wasmtime_module_deserialize(engine, reinterpret_cast<const std::uint8_t*>(bytes->data()),
                                                       bytes->size(), &module));
  return copied ? nullptr : ModuleHandle(module);
}

// How a call into the module came back.
struct Return {
  ErrorHandle error;
  TrapHandle trap;
};

bool has_code(const Return& returned, wasmtime_trap_code_t wanted) {
  wasmtime_trap_code_t code = 0;
  return returned.trap && wasmtime_trap_code(returned.trap.get(), &code) && code == wanted;
}

// The engine's text: a line for each of the last twenty calls on the module's stack, then the reason.
void tell_of_trap(const Return& returned) {
  const std::string text = returned.trap ? message_of(returned.trap.get()) : message_of(returned.error.get());
  (void)write_all(STDERR_FILENO, fmt::format("{}\n", text));  // a closed stderr is the module's choice
}

// Each linear memory has 4 GiB of addresses, used or not, so that no access has to be checked.
Report refuse_by_address_space(std::uint64_t most) {
  return {.ending = Ending::no_addresses,
          .message = fmt::format("its memory takes more address space than RLIMIT_AS (ulimit -v) leaves, which is {} "
                                 "MiB; some 5 GiB are needed, though not used: lift that limit",
                                 most >> 20)};
}

Report judge(const Return& returned, const Wasi& wasi, const belljar_limits& limits) {
  Report report{.memory_bytes = limits.bytes};
  if (wasi.exit_code()) {
    report.exit_code = *wasi.exit_code();
  } else if (!returned.error && !returned.trap) {
    report.exit_code = 0;
  } else if (limits.exceeded) {
    report.ending = Ending::out_of_memory;
  } else if (has_code(returned, WASMTIME_TRAP_CODE_OUT_OF_FUEL)) {
    report.ending = Ending::out_of_fuel;
  } else {
    report.ending = Ending::trapped;
    tell_of_trap(returned);
  }
  return report;
}

Return instantiate_and_call(wasmtime_linker_t* linker, wasmtime_context_t* context, const wasmtime_module_t* module) {
  wasmtime_instance_t instance;
  wasm_trap_t* trap = nullptr;
  ErrorHandle error(wasmtime_linker_instantiate(linker, context, module, &instance, &trap));
  if (error || trap != nullptr) return {std::move(error), TrapHandle(trap)};
  wasmtime_extern_t start;
  constexpr std::string_view kStart = "_start";
  if (!wasmtime_instance_export_get(context, &instance, kStart.data(), kStart.size(), &start) ||
      start.kind != WASMTIME_EXTERN_FUNC) {
    return {ErrorHandle(wasmtime_error_new("the module exports no function _start")), nullptr};
  }
  error.reset(wasmtime_func_call(context, &start.of.func, nullptr, 0, nullptr, 0, &trap));
  return {std::move(error), TrapHandle(trap)};
}

}  // namespace

Report run(const RunJob& job) {
  const FuelIs fuel = job.fuel ? FuelIs::counted : FuelIs::not_counted;
  const EngineHandle engine = make_engine(fuel, CodeFor::this_processor, grow_stack());
  Wasi wasi(job.arguments, job.variables);
  wasi.add_standard_streams();
  for (const std::string& folder : job.folders) {
    if (const auto added = wasi.add_folder(folder); !added) {
      return {.ending = Ending::unusable, .message = fmt::format("{}: {}", folder, errno_text(added.error().value))};
    }
  }
  rlimit space{};
  ::getrlimit(RLIMIT_AS, &space);
  Report unusable{.ending = Ending::unusable};
  const ModuleHandle module = load(engine.get(), job.path, &unusable.message);
  if (!module) return unusable;
  confine_self(wasm_profile());

  belljar_limits limits{.bytes_max = job.memory_bytes};
  const StoreHandle store(wasmtime_store_new(engine.get(), nullptr, nullptr));
  belljar_store_limit(store.get(), &limits);
  wasmtime_context_t* const context = wasmtime_store_context(store.get());
  if (job.fuel) (void)ErrorHandle(wasmtime_context_set_fuel(context, *job.fuel));
  const LinkerHandle linker(wasmtime_linker_new(engine.get()));
  define_imports(linker.get(), wasi);
  const Return returned = instantiate_and_call(linker.get(), context, module.get());
  if (returned.error && !limits.exceeded && space.rlim_cur != RLIM_INFINITY) {
    return refuse_by_address_space(space.rlim_cur);
  }
  Report report = judge(returned, wasi, limits);
  std::uint64_t left = 0;
  if (job.fuel && !ErrorHandle(wasmtime_context_get_fuel(context, &left))) report.fuel_used = *job.fuel - left;
  return report;
}

}  // namespace belljar::wasm
