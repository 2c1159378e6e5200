#include "tiers/wasm/compiled.h"

#include <cpuid.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "base/sha256.h"
#include "host/own_program.h"
#include "spec/errors.h"
#include "tiers/wasm/module_cache.h"
#include "tiers/wasm/reports.h"
#include "tiers/watcher.h"

namespace belljar::wasm {
namespace {

constexpr const char* kEngineTarget = "/.belljar/engine";
constexpr std::uint64_t kModuleBytesMax = 100 * kMiB;  // it lies in the sandbox's root while it is compiled
constexpr std::uint64_t kCompiledBytesMax = ModuleCache::kEntryBytesMax;
constexpr std::uint64_t kCompileMemoryBytes = 1 * kGiB;
constexpr std::uint64_t kCompileTimeMs = 60'000;

// The module as it is now: a copy, so that what is compiled is what the digest is of.
struct Module {
  Fd copy;  // a memfd_create(2)
  std::string digest;
};

std::unexpected<Error> bad_file(const std::string& path, std::string_view what) {
  return fail(ErrorCode::bad_module, fmt::format("{}: {}", path, what));
}

Result<Module> read_module(const std::string& path) {
  auto file = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file) return fail(ErrorCode::bad_script, fmt::format("{}: {}", path, errno_text(file.error().value)));
  struct stat status{};
  if (::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(ErrorCode::bad_script, fmt::format("{}: this is not a regular file; give the path of a module", path));
  }
  const auto bytes = read_all(file->get(), kModuleBytesMax);
  if (!bytes && bytes.error().value == EFBIG) {
    return bad_file(
        path, fmt::format("a module of more than {} is too large", format_limit(LimitUnit::bytes, kModuleBytesMax)));
  }
  if (!bytes) return fail(ErrorCode::bad_script, fmt::format("{}: {}", path, errno_text(bytes.error().value)));
  Fd copy(::memfd_create("module", MFD_CLOEXEC));
  if (!copy.is_open() || !write_all(copy.get(), *bytes)) {
    return fail(ErrorCode::no_resources, fmt::format("{}: no memory for a copy of it: {}", path, errno_text(errno)));
  }
  return Module{std::move(copy), sha256_of(*bytes)};
}

// All that compiled code depends on besides the module: the engine and the processor's abilities.
Result<std::string> key_of(const Module& module, FuelIs fuel, const SandboxFile& engine) {
  struct stat status{};
  if (::fstat(engine.opened.get(), &status) != 0) {
    return fail(ErrorCode::host_unsupported, fmt::format("{}: {}", engine.path, errno_text(errno)));
  }
  std::string all = fmt::format("{} {} {} {} {} {}", module.digest, fuel == FuelIs::counted, status.st_ino,
                                status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  for (const unsigned leaf : {1U, 7U, 0x80000001U}) {
    // Of leaf 1, the first two tell of this processor among others, not of its abilities.
    unsigned parts[4] = {};
    __get_cpuid_count(leaf, 0, &parts[0], &parts[1], &parts[2], &parts[3]);
    for (const unsigned part : leaf == 1 ? std::span(parts).subspan(2) : std::span(parts).subspan(0)) {
      all += fmt::format(" {:x}", part);
    }
  }
  return sha256_of(all);
}

void end(RunningSandbox& sandbox) {
  sandbox.kill();
  pollfd ended{sandbox.ended_fd(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
}

enum class Collecting { ended, out_of_time, cancelled };

// Moves what a sandbox writes, until it has ended, the time is over, or the caller wants no more.
Collecting collect(RunningSandbox& sandbox, int cancel_fd, std::string* out) {
  const std::uint64_t deadline = monotonic_ms() + kCompileTimeMs;
  std::vector<char> buffer(std::size_t{1} << 16);
  bool is_open = true;
  while (monotonic_ms() < deadline) {
    HostStreams& streams = sandbox.streams();
    std::array<pollfd, 5> wanted = {{{is_open ? streams.stdout_read.get() : -1, POLLIN, 0},
                                     {sandbox.ended_fd(), POLLIN, 0},
                                     {sandbox.report_fd(), POLLIN, 0},
                                     {sandbox.refusal_fd(), POLLIN, 0},
                                     {cancel_fd, POLLIN, 0}}};
    const int left = static_cast<int>(deadline - monotonic_ms());
    if (::poll(wanted.data(), wanted.size(), std::max(left, 0)) < 0) continue;  // EINTR
    if (wanted[0].revents != 0) {
      const ssize_t count = ::read(streams.stdout_read.get(), buffer.data(), buffer.size());
      is_open = count > 0;
      if (count > 0 && out->size() <= kCompiledBytesMax) out->append(buffer.data(), static_cast<std::size_t>(count));
      continue;  // all of it, before the end is seen
    }
    if (wanted[2].revents != 0) (void)sandbox.read_report();
    if (wanted[3].revents != 0) sandbox.answer_refusal();
    if (wanted[1].revents != 0) return Collecting::ended;
    if (wanted[4].revents != 0) {
      end(sandbox);
      return Collecting::cancelled;
    }
  }
  end(sandbox);
  return Collecting::out_of_time;
}

Result<std::string> compile(const std::string& path, const Module& module, FuelIs fuel, SandboxFile engine,
                            int cancel_fd) {
  SandboxSpec spec;
  spec.script = fmt::format("/proc/self/fd/{}", module.copy.get());
  spec.limits.memory.value = kCompileMemoryBytes;
  spec.limits.timeout.value = kCompileTimeMs;
  const CompileJob job{.path = script_target(spec), .fuel = fuel, .bytes_max = kCompiledBytesMax};
  auto [report_read, report_write] = TRY(make_report_pipe());
  OwnProgram program{.program = engine.target,
                     .arguments = job.to_arguments(),
                     .report = std::move(report_write),
                     .script_bytes_max = kModuleBytesMax};
  program.files.push_back(std::move(engine));
  const std::unique_ptr<RunningSandbox> sandbox = TRY(start_own_program(spec, std::move(program)));
  sandbox->streams().stdin_write.reset();
  std::string compiled;
  const Collecting collected = collect(*sandbox, cancel_fd, &compiled);
  const TierExit exit = sandbox->finish();
  if (collected == Collecting::cancelled) return bad_file(path, "stopped by the caller while it was compiled");
  if (collected == Collecting::out_of_time) {
    return bad_file(
        path, fmt::format("it can't be compiled within {}", format_limit(LimitUnit::milliseconds, kCompileTimeMs)));
  }
  if (exit.error) return std::unexpected(*exit.error);
  if (exit.hit_memory_limit) {
    return bad_file(
        path, fmt::format("it can't be compiled in {} of memory", format_limit(LimitUnit::bytes, kCompileMemoryBytes)));
  }
  const auto report = read_report_pipe(report_read.get());
  if (report && report->ending == Ending::compiled) return compiled;
  return std::unexpected(error_of(path, report));
}

}  // namespace

Result<SandboxFile> open_engine() {
  auto program = host::open_own_program(kProgramName);
  if (program) return SandboxFile{std::move(program->opened), std::move(program->path), kEngineTarget};
  return fail(ErrorCode::host_unsupported,
              fmt::format("the wasm tier's engine {} is {}; `./dev wasm` in Belljar's sources builds it", kProgramName,
                          host::own_program_places()));
}

Result<SandboxFile> compiled_module(const std::string& path, FuelIs fuel, std::string target) {
  SandboxFile engine = TRY(open_engine());
  const Module module = TRY(read_module(path));
  const std::string key = TRY(key_of(module, fuel, engine));
  const ModuleCache cache = TRY(ModuleCache::open());
  std::optional<CachedModule> found = cache.find(key);
  if (!found) {
    const std::string compiled = TRY(compile(path, module, fuel, std::move(engine), -1));
    found = TRY(cache.put(key, compiled));
  }
  return SandboxFile{std::move(found->file), std::move(found->path), std::move(target)};
}

Result<void> prepare_module(const std::string& path, FuelIs fuel, int cancel_fd) {
  SandboxFile engine = TRY(open_engine());
  const Module module = TRY(read_module(path));
  const std::string key = TRY(key_of(module, fuel, engine));
  const ModuleCache cache = TRY(ModuleCache::open());
  if (cache.has(key)) return {};
  const std::string compiled = TRY(compile(path, module, fuel, std::move(engine), cancel_fd));
  TRY(cache.put(key, compiled));
  return {};
}

}  // namespace belljar::wasm
