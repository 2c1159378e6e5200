#include "cli/execute.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/utf8.h"
#include "belljar/belljar.h"
#include "cli/recorder.h"
#include "image/active_environment.h"
#include "image/image_loader.h"
#include "image/image_store.h"
#include "spec/checks.h"
#include "spec/interpreter.h"
#include "tiers/choose.h"

namespace belljar {
namespace {

constexpr std::size_t kPathBytesShown = 400;

// What would end this process (signal(7)) and is no fault of its own.
constexpr int kStopSignals[] = {SIGINT,  SIGTERM,   SIGHUP,  SIGQUIT, SIGABRT,   SIGUSR1, SIGUSR2,
                                SIGALRM, SIGVTALRM, SIGPROF, SIGIO,   SIGSTKFLT, SIGPWR,  SIGXCPU};

// These signals as something to poll, so that they end the run cleanly.
class StopSignals {
 public:
  StopSignals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : kStopSignals) {
      struct sigaction inherited{};
      const bool is_ignored = ::sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
      if (!is_ignored) ::sigaddset(&signals, signal);  // ignored by nohup(1), or by a shell's "&": it stays so
    }
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    fd_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  int fd() const { return fd_.get(); }

  // The signal that came, or 0.
  int received() const {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  Fd fd_;
};

void say_what_was_dropped(const char* name, const CapturedStream& stream, const SandboxSpec& spec) {
  if (!stream.truncated) return;
  say(fmt::format("{} was cut at the output limit of {}; the program wrote {} bytes (--output-limit keeps more)", name,
                  format_limit(LimitUnit::bytes, spec.limits.output.value), stream.bytes_total));
}

void say_what_was_skipped(const Outcome& outcome, const SandboxSpec& spec) {
  constexpr std::size_t kLinesMax = 20;
  const std::size_t count = outcome.files_skipped.size();
  for (const SkippedFile& file : std::span(outcome.files_skipped).first(std::min(count, kLinesMax))) {
    const bool is_change = file.path == kWorkspaceTarget || file.path.starts_with(std::string(kWorkspaceTarget) + "/");
    const bool was_kept_from = is_change && !spec.workspace.empty();
    say(fmt::format("not {}: {}: {}", was_kept_from ? "kept" : "collected", quote(file.path, kPathBytesShown),
                    file.reason));
  }
  if (count > kLinesMax) say(fmt::format("{} more were left behind; --json names them all", count - kLinesMax));
}

// Of a program that failed: what it was refused may be why.
void say_what_was_refused(const Outcome& outcome) {
  constexpr std::size_t kLinesMax = 3;
  if (outcome.status != RunStatus::error && outcome.status != RunStatus::signal) return;
  std::size_t lines = 0;
  for (const Denial& denial : outcome.denials) {
    if (denial.kind != "syscall" || ++lines > kLinesMax) continue;
    const std::string times = denial.count == 1 ? "" : fmt::format(" {} times", denial.count);
    say(fmt::format("refused {}{}: {} ({})", denial.target, times, denial.rule, denial.hint));
  }
  if (lines > kLinesMax) say(fmt::format("refused {} more system calls; --json names them", lines - kLinesMax));
}

// The program that will be looked for on PATH; empty where a path names it.
std::string program_name(const SandboxSpec& spec) {
  if (!spec.command.empty()) return spec.command.front();
  std::array<char, kScriptHeadBytes> head{};
  const auto script = open_at(AT_FDCWD, spec.script.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  const ssize_t count = script ? ::pread(script->get(), head.data(), head.size(), 0) : 0;
  const auto words = choose_interpreter(script_name(spec.script),
                                        {head.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
  if (!words) return "";
  return words->front() == "/usr/bin/env" ? words->back() : words->front();
}

// Modules of the caller's own interpreter are missing inside, and that is hard to guess from the program's errors.
void hint_at_outside_interpreter(const SandboxSpec& spec) {
  if (spec.tier == "wasm" || !spec.venv.empty() || !spec.image.empty()) return;
  const std::string program = program_name(spec);
  if (program.empty() || program.find('/') != std::string::npos) return;
  const auto outside = find_outside_interpreter(program, [](const char* name) { return std::getenv(name); });
  if (outside) say(outside_interpreter_hint(*outside));
}

// The caller's terminal hands every key on as it is typed, for as long as this lives (termios(3)).
class RawTerminal {
 public:
  RawTerminal() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    sigset_t stop;  // a stopped Belljar would leave the terminal raw to the shell; nothing typed stops it now
    ::sigemptyset(&stop);
    ::sigaddset(&stop, SIGTSTP);
    ::sigprocmask(SIG_BLOCK, &stop, nullptr);
    is_raw_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() {
    if (is_raw_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }

 private:
  termios before_{};
  bool is_raw_ = false;
};

Fd resize_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGWINCH);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

RunIo plan_io(const RunOptions& options, int cancel_fd) {
  RunIo io;
  io.stdin_fd = STDIN_FILENO;
  io.cancel_fd = cancel_fd;
  io.capture = options.json || options.keep;
  if (options.json) {
    // A caller that is killed, or stops while it starts this process, can't end the run in another way.
    struct stat status{};
    const bool is_known = ::fstat(STDOUT_FILENO, &status) == 0;
    if (is_known && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))) io.reader_fd = STDOUT_FILENO;
    return io;
  }
  io.stdout_fd = STDOUT_FILENO;
  io.stderr_fd = STDERR_FILENO;
  if (::isatty(STDOUT_FILENO) == 1) io.stdout_form = RunIo::Form::terminal_safe;
  if (::isatty(STDERR_FILENO) == 1) io.stderr_form = RunIo::Form::terminal_safe;
  return io;
}

// An image that is named by its path is loaded on its first use, and again after a change of the file.
Result<void> load_named_path(const SandboxSpec& spec) {
  if (!is_image_path(spec.image)) return {};
  ImageStore store = TRY(ImageStore::open(MissingStore::is_made));
  TRY(load_image_path(store, spec.image, LoadLimits{}));
  return {};
}

// The lines on stderr and the record; returns the exit status of `belljar run`.
int report_ending(const Outcome& outcome, const SandboxSpec& spec, const RunOptions& options, const StopSignals& stop) {
  say_what_was_dropped("stdout", outcome.standard_output, spec);
  say_what_was_dropped("stderr", outcome.standard_error, spec);
  say_what_was_skipped(outcome, spec);
  if (!outcome.changes_id.empty()) {
    say(fmt::format("the changes to {} are kept as {}: belljar changes diff {}", quote(spec.workspace, kPathBytesShown),
                    outcome.changes_id, outcome.changes_id));
  }
  say_what_was_refused(outcome);
  if (::isatty(STDERR_FILENO) == 1) {
    for (const std::string& warning : outcome.warnings) say("close to a limit: " + warning);
  }
  if (!outcome.reason.empty()) {
    const bool was_killed = outcome.signal.has_value() && outcome.standard_output.bytes_total > 0 && !outcome.error;
    say(outcome.reason + (was_killed && !options.json ? "; output so far is above" : ""));
  }
  const bool written = write_record(outcome, options);
  if (outcome.status == RunStatus::cancelled) {
    const int signal = stop.received();
    return 128 + (signal != 0 ? signal : SIGPIPE);
  }
  return written ? exit_status(outcome) : error_exit_status(ErrorCode::output_lost);
}

}  // namespace

int execute_run(const SandboxSpec& asked, const RunOptions& options) {
  SandboxSpec spec = asked;
  if (spec.tier == kAutoTier) {
    const Result<TierChoice> choice = choose_tier(spec, find_trust(options.trust).value_or(Trust::untrusted));
    if (!choice) return report_refusal(choice.error(), options);
    if (options.explain) say(fmt::format("isolation {}: {}", choice->tier, choice->why));
    spec.tier = choice->tier;
  }
  if (!options.limits_of.empty()) {
    const Result<Limits> limits = calibrated_limits(spec.limits, options.limits_of);
    if (!limits) return report_refusal(limits.error(), options, &spec);
    spec.limits = *limits;
  }
  const bool is_read = options.json || options.status_fd || !options.profile.empty() || ::isatty(STDERR_FILENO) == 1;
  spec.account = is_read ? Account::always : Account::of_failures;
  if (const auto loaded = load_named_path(spec); !loaded) return report_refusal(loaded.error(), options, &spec);
  std::optional<Recorder> recorder;
  if (!options.profile.empty()) {
    Result<Recorder> opened = Recorder::open(options, spec);
    if (!opened) return report_refusal(opened.error(), options, &spec);
    recorder.emplace(std::move(*opened));
  }
  const StopSignals stop;
  RunIo io = plan_io(options, stop.fd());
  Fd resize;
  std::optional<RawTerminal> raw;
  if (spec.terminal) {
    resize = resize_signals();
    io.terminal_fd = STDIN_FILENO;
    io.resize_fd = resize.get();
    io.stdout_form = RunIo::Form::raw;
  }
  io.on_started = [&] {
    hint_at_outside_interpreter(spec);
    if (spec.terminal) raw.emplace();
  };
  const Result<Outcome> outcome = run(spec, io);
  raw.reset();
  if (recorder) recorder->record(outcome ? *outcome : refused_outcome(outcome.error(), spec));
  if (!outcome) return report_refusal(outcome.error(), options, &spec);
  return report_ending(*outcome, spec, options, stop);
}

}  // namespace belljar
