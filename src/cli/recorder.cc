#include "cli/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>

#include "base/fd.h"
#include "store/calibration.h"

namespace belljar {
namespace {

const char* environment(const char* name) {
  return std::getenv(name);
}

// The script as the caller can read it now, or the command, a word a line.
std::string program_text(const SandboxSpec& spec) {
  if (spec.script.empty()) {
    std::string text;
    for (const std::string& word : spec.command) text += word + "\n";
    return text;
  }
  const auto script = open_at(AT_FDCWD, spec.script.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!script) return "";  // the run will say why
  std::string text(kKeptBytesMax, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(script->get(), text.data() + size, text.size() - size);
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

}  // namespace

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string time_text(std::int64_t ms, const char* form) {
  const auto seconds = static_cast<time_t>(ms / 1000);
  tm parts{};
  std::array<char, 64> text{};
  if (::localtime_r(&seconds, &parts) == nullptr) return "?";
  return {text.data(), ::strftime(text.data(), text.size(), form, &parts)};
}

Result<Store> open_own_store() {
  const std::string file = TRY(store_file(environment));
  return Store::open_existing(file);
}

Result<Limits> calibrated_limits(const Limits& limits, const std::string& profile) {
  Store store = TRY(open_own_store());
  const auto runs = TRY(store.uses(profile, unix_ms() - kCalibrationSinceMs));
  const Calibration calibration = calibrate(runs, {});
  const std::string remedy = fmt::format(
      "record more, or let belljar calibrate --profile {} --force --write FILE make a policy file of them", profile);
  TRY_VOID(check_enough(calibration, profile, remedy));
  return with_proposals(limits, calibration);
}

Result<Recorder> Recorder::open(const RunOptions& options, const SandboxSpec& spec) {
  const std::string file = TRY(store_file(environment));
  Store store = TRY(Store::open(file));
  NewRun run{options.profile, unix_ms(), nullptr, std::nullopt};
  if (options.keep) run.kept = KeptTexts{program_text(spec), "", ""};
  return Recorder(std::move(store), std::move(run));
}

void Recorder::record(const Outcome& outcome) {
  run_.outcome = &outcome;
  if (run_.kept) {
    run_.kept->standard_output = outcome.standard_output.bytes;
    run_.kept->standard_error = outcome.standard_error.bytes;
  }
  const Result<std::int64_t> id = store_.record(run_);
  if (!id) say("this run is not recorded: " + id.error().message);
}

}  // namespace belljar
