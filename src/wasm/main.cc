// belljar-wasm: compiles or runs one WebAssembly module. Started by belljar inside a sandbox of the container tier,
// with the arguments of job.h; of no use to anyone else.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/fd.h"
#include "wasm/engine.h"

namespace belljar::wasm {
namespace {

constexpr int kFailed = 1;
constexpr int kTrapped = 128 + SIGABRT;
constexpr std::uint32_t kExitStatusMax = 255;

int exit_status_of(const Report& report) {
  if (report.ending == Ending::trapped) return kTrapped;
  if (report.ending == Ending::compiled) return 0;
  if (report.ending != Ending::exited) return kFailed;
  return static_cast<int>(std::min(report.exit_code, kExitStatusMax));
}

}  // namespace
}  // namespace belljar::wasm

int main(int count, char** texts) {
  using namespace belljar;
  ::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(texts, texts + count);
  wasm::Report report;
  if (const auto compiling = wasm::CompileJob::from_arguments(arguments)) {
    report = wasm::compile(*compiling);
  } else if (const auto running = wasm::RunJob::from_arguments(arguments)) {
    report = wasm::run(*running);
  } else {
    return wasm::kFailed;
  }
  const bool is_told = write_all(wasm::kReportFd, encode(report)).has_value();
  // At once: nothing here has to be given back.
  ::_exit(is_told ? wasm::exit_status_of(report) : wasm::kFailed);
}
