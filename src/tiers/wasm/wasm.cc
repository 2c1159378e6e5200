#include "tiers/wasm/wasm.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>

#include "host/own_program.h"
#include "spec/errors.h"
#include "spec/interpreter.h"
#include "tiers/container/container.h"
#include "tiers/refused_limits.h"
#include "tiers/wasm/compiled.h"
#include "tiers/wasm/interpreters.h"
#include "tiers/wasm/module_cache.h"
#include "tiers/wasm/plan_run.h"
#include "tiers/wasm/reports.h"

namespace belljar {
namespace wasm {
namespace {

constexpr const char* kModuleTarget = "/.belljar/module";
constexpr std::uint64_t kScriptBytesMax = 16 * kMiB;

FuelIs fuel_of(const Limits& limits) {
  return is_unlimited(limit_row("fuel"), limits.fuel.value) ? FuelIs::not_counted : FuelIs::counted;
}

// The sandbox of the container tier that the engine is in, and the engine's report.
class WasmSandbox final : public RunningSandbox {
 public:
  WasmSandbox(const SandboxSpec& spec, std::unique_ptr<RunningSandbox> inner, Fd report)
      : script_(spec.script), limits_(spec.limits), inner_(std::move(inner)), report_(std::move(report)) {
    isolation_ = inner_->isolation();
    isolation_.tier = "wasm";
    std::erase_if(isolation_.enforced, [](const std::string& name) { return is_refused_limit("wasm", name); });
    if (fuel_of(limits_) == FuelIs::counted) isolation_.enforced.emplace_back("fuel");
  }

  HostStreams& streams() override { return inner_->streams(); }
  int ended_fd() const override { return inner_->ended_fd(); }
  int report_fd() const override { return inner_->report_fd(); }
  ReportIs read_report() override { return inner_->read_report(); }
  int refusal_fd() const override { return inner_->refusal_fd(); }
  void answer_refusal() override { inner_->answer_refusal(); }
  std::uint64_t started_us() const override { return inner_->started_us(); }
  Glance look() override { return inner_->look(); }
  int broken_fd() const override { return inner_->broken_fd(); }
  void kill() override { inner_->kill(); }
  Result<std::vector<WritablePlace>> take_writable_places() override { return inner_->take_writable_places(); }
  const Isolation& isolation() const override { return isolation_; }
  void abandon() override { inner_->abandon(); }

  TierExit finish() override {
    TierExit exit = inner_->finish();
    const bool ended_by_itself = exit.exit_code.has_value() && !exit.error;
    const std::optional<Report> report = read_report_pipe(report_.get());
    if (!ended_by_itself) return exit;  // killed from outside, or by the kernel
    if (!report) {
      exit.error = error_of(script_, report);
      return exit;
    }
    if (fuel_of(limits_) == FuelIs::counted) exit.usage.fuel_used = report->fuel_used;
    judge(*report, &exit);
    return exit;
  }

 private:
  void judge(const Report& report, TierExit* exit) const {
    const auto ended_by = [&](RunStatus status, std::string_view limit) {
      const LimitRow& row = limit_row(limit);
      exit->verdict = Verdict{status, limit_sentence(row, (limits_.*row.field).value)};
      exit->exit_code.reset();
      exit->signal = SIGKILL;
    };
    switch (report.ending) {
      case Ending::exited:
      case Ending::trapped:
        return;
      case Ending::out_of_fuel:
        return ended_by(RunStatus::cpu, "fuel");
      case Ending::out_of_memory:
        exit->denials.push_back(
            {"memory", "more linear memory", limit_sentence(limit_row("memory"), limits_.memory.value), "--memory"});
        return ended_by(RunStatus::memory, "memory");
      default:
        exit->error = error_of(script_, report);
    }
  }

  std::string script_;
  Limits limits_;
  Isolation isolation_;
  std::unique_ptr<RunningSandbox> inner_;
  Fd report_;
};

Result<host::OwnFile> open_own_file(const std::string& name, const Interpreter& interpreter) {
  auto file = host::open_own_program(name);
  if (file) return std::move(*file);
  return fail(ErrorCode::host_unsupported,
              fmt::format("the interpreter of {} scripts, {}, is {}; `./dev wasm` in Belljar's sources builds it",
                          interpreter.extension, name, host::own_program_places()));
}

// Whether the interpreter must be compiled here, as any module: its code as Belljar's own installation has it counts no
// fuel, and is for processors that have what CodeFor::any_processor says.
bool needs_compiling(FuelIs fuel) {
  return fuel == FuelIs::counted || !__builtin_cpu_supports("x86-64-v2");
}

Result<host::OwnFile> open_interpreter_file(const Interpreter& interpreter, FuelIs fuel) {
  const char* const form = needs_compiling(fuel) ? "wasm" : "cwasm";
  return open_own_file(fmt::format("belljar-{}.{}", interpreter.name, form), interpreter);
}

Result<host::OwnFile> open_library(const Interpreter& interpreter) {
  return open_own_file(fmt::format("belljar-{}", interpreter.library), interpreter);
}

// Whether all of it is installed.
Result<void> check_interpreter(const Interpreter& interpreter, FuelIs fuel) {
  TRY(open_interpreter_file(interpreter, fuel));
  if (!interpreter.library.empty()) TRY(open_library(interpreter));
  return {};
}

Result<SandboxFile> open_interpreter(const Interpreter& interpreter, FuelIs fuel) {
  host::OwnFile file = TRY(open_interpreter_file(interpreter, fuel));
  if (needs_compiling(fuel)) return compiled_module(file.path, fuel, kModuleTarget);
  return SandboxFile{std::move(file.opened), std::move(file.path), kModuleTarget};
}

// A module to run, and what it takes.
struct Start {
  RunJob job;
  SandboxSpec inner;
  std::vector<SandboxFile> files;
};

// The caller's script is the interpreter's first argument, and is seen where the container tier has scripts.
Result<void> add_interpreter(const Interpreter& interpreter, FuelIs fuel, Start* start) {
  const std::string script = script_target(start->inner);
  RunJob& job = start->job;
  job.folders.push_back(script.substr(0, script.rfind('/')));
  job.arguments.front() = script;
  if (!interpreter.option.empty()) job.arguments.emplace(job.arguments.begin(), interpreter.option);
  job.arguments.emplace(job.arguments.begin(), interpreter.argument);
  start->files.push_back(TRY(open_interpreter(interpreter, fuel)));
  if (interpreter.library.empty()) return {};
  host::OwnFile library = TRY(open_library(interpreter));
  start->files.push_back(
      {std::move(library.opened), std::move(library.path), fmt::format("{}/{}", kLibraryFolder, interpreter.library)});
  job.folders.emplace_back(kLibraryFolder);
  return {};
}

Result<Start> prepare(const SandboxSpec& spec) {
  TRY_VOID(check_spec(spec));
  Start start{.job = TRY(plan_run(spec)), .inner = spec, .files = {}};
  start.job.path = kModuleTarget;
  start.inner.tier = "container";
  start.inner.limits.fuel = {limit_row("fuel").most};
  start.files.push_back(TRY(open_engine()));
  const FuelIs fuel = fuel_of(spec.limits);
  if (const Interpreter* const interpreter = interpreter_of(spec.script)) {
    TRY_VOID(add_interpreter(*interpreter, fuel, &start));
    return start;
  }
  start.files.push_back(TRY(compiled_module(spec.script, fuel, kModuleTarget)));
  start.inner.script.clear();
  return start;
}

// Interpreters are compiled already, for most runs.
Result<void> prepare_program(const SandboxSpec& spec, int cancel_fd) {
  TRY_VOID(check_spec(spec));
  const FuelIs fuel = fuel_of(spec.limits);
  const Interpreter* const interpreter = interpreter_of(spec.script);
  if (interpreter == nullptr) return prepare_module(spec.script, fuel, cancel_fd);
  if (!needs_compiling(fuel)) return {};
  const host::OwnFile file = TRY(open_interpreter_file(*interpreter, fuel));
  return prepare_module(file.path, fuel, cancel_fd);
}

Result<std::unique_ptr<RunningSandbox>> start_module(const SandboxSpec& spec) {
  Start start = TRY(prepare(spec));
  auto [report_read, report_write] = TRY(make_report_pipe());
  OwnProgram program{.program = start.files.front().target,
                     .arguments = start.job.to_arguments(),
                     .report = std::move(report_write),
                     .script_bytes_max = kScriptBytesMax};
  program.files = std::move(start.files);
  auto sandbox = TRY(start_own_program(start.inner, std::move(program)));
  return std::make_unique<WasmSandbox>(spec, std::move(sandbox), std::move(report_read));
}

// (module (memory (export "memory") 1) (func (export "_start")) (data (i32.const 0) "x")): its data too are mapped.
constexpr unsigned char kTrialModule[] = {0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, 0x01, 0x04, 0x01, 0x60,
                                          0x00, 0x00, 0x03, 0x02, 0x01, 0x00, 0x05, 0x03, 0x01, 0x00, 0x01, 0x07,
                                          0x13, 0x02, 0x06, 'm',  'e',  'm',  'o',  'r',  'y',  0x02, 0x00, 0x06,
                                          '_',  's',  't',  'a',  'r',  't',  0x00, 0x00, 0x0a, 0x04, 0x01, 0x02,
                                          0x00, 0x0b, 0x0b, 0x07, 0x01, 0x00, 0x41, 0x00, 0x0b, 0x01, 'x'};

class WasmTier final : public Tier {
 public:
  std::string_view name() const override { return "wasm"; }
  std::vector<WallReport> probe() const override {
    std::vector<WallReport> walls = container_tier().probe();
    std::erase_if(walls, [&](const WallReport& wall) { return is_refused_limit(name(), wall.name); });
    for (WallReport& wall : walls) {
      if (wall.name == "fuel") wall = {wall.name, WallState::enforced, "", ""};
    }
    return walls;
  }
  Result<void> check(const SandboxSpec& spec) const override {
    TRY_VOID(check_spec(spec));
    TRY(plan_run(spec));
    if (is_module(spec.script)) return {};
    if (const Interpreter* const interpreter = find_interpreter(script_name(spec.script))) {
      return check_interpreter(*interpreter, fuel_of(spec.limits));
    }
    return fail(ErrorCode::usage, fmt::format("{}: the wasm tier runs modules, and scripts that end in {}", spec.script,
                                              known_extensions()));
  }
  Result<void> prepare(const SandboxSpec& spec, int cancel_fd) const override {
    return prepare_program(spec, cancel_fd);
  }
  Result<std::unique_ptr<RunningSandbox>> start(const SandboxSpec& spec) const override { return start_module(spec); }
  Result<SandboxSpec> trial() const override {
    TRY(open_engine());
    static const Fd kModule(::memfd_create("trial", MFD_CLOEXEC));
    static const bool kIsWritten =
        write_all(kModule.get(), {reinterpret_cast<const char*>(kTrialModule), sizeof kTrialModule}).has_value();
    if (!kIsWritten) return fail(ErrorCode::no_resources, "no memory for a module to try");
    return SandboxSpec{.tier = "wasm", .script = fmt::format("/proc/self/fd/{}", kModule.get())};
  }
};

}  // namespace
}  // namespace wasm

const Tier& wasm_tier() {
  static const wasm::WasmTier kTier;
  return kTier;
}

bool is_wasm_module(const std::string& path) {
  return wasm::is_module(path);
}

std::uint64_t sweep_modules() {
  if (!wasm::open_engine()) return 0;  // nothing was ever compiled
  const auto cache = wasm::ModuleCache::open();
  return cache ? cache->sweep() : 0;
}

std::vector<std::string> wasm_parts() {
  std::vector<std::string> parts;
  if (wasm::open_engine()) parts.emplace_back("wasm-engine");
  for (const wasm::Interpreter& row : wasm::interpreters()) {
    std::string part = fmt::format("wasm-{}", row.name);
    const bool is_listed = std::ranges::find(parts, part) != parts.end();
    if (!is_listed && wasm::check_interpreter(row, wasm::FuelIs::not_counted)) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace belljar
