// The supervisor: one call, one sandbox, from its start to its clean end.
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>

#include "base/utf8.h"
#include "belljar/belljar.h"
#include "files/capture.h"
#include "files/change_store.h"
#include "files/collect.h"
#include "files/workspace.h"
#include "spec/limit_use.h"
#include "spec/limits.h"
#include "supervisor/streams.h"
#include "tiers/tier.h"
#include "tiers/watcher.h"

namespace belljar {
namespace {

// How long the kernel may take to end a killed sandbox before the run is given up and left to the watcher.
constexpr std::uint64_t kKillPatienceMs = 10000;

// With every process of the sandbox gone its pipes end at once; only a fork of this very process, in another thread,
// may hold one a moment longer.
constexpr int kDrainPatienceMs = 1000;

constexpr std::size_t kMessageBytesMax = 8192;

// Keeps SIGPIPE from this thread while streams are written, and takes one that came back.
class SigpipeBlock {
 public:
  SigpipeBlock() {
    ::sigemptyset(&sigpipe_);
    ::sigaddset(&sigpipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;
  ~SigpipeBlock() {
    if (::sigismember(&before_, SIGPIPE) == 1) return;
    constexpr timespec kNow{0, 0};
    while (::sigtimedwait(&sigpipe_, nullptr, &kNow) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t sigpipe_{};
  sigset_t before_{};
};

enum class KillCause { none, timeout, cpu, cancelled, output, reader_gone, slow_start, broken };

// When to look at what a sandbox has taken: often while its memory changes, and ever more rarely while it does not, as
// most sandboxes of an interactive user's wait for something. Where processor time is limited, in time for that.
class LookPace {
 public:
  LookPace(const Limits& limits, std::uint64_t now_ms)
      : cpu_limit_ms_(is_unlimited(limit_row("cpu_time"), limits.cpu_time.value) ? 0 : limits.cpu_time.value),
        cores_((limits.cpus.value + 999) / 1000),
        next_ms_(now_ms + next_interval(0)) {}

  bool is_due(std::uint64_t now_ms) const { return now_ms >= next_ms_; }
  std::uint64_t next_ms() const { return next_ms_; }

  // False when the processor time is used up.
  bool goes_on(const RunningSandbox::Glance& glance, std::uint64_t now_ms) {
    const std::uint64_t change =
        std::max(glance.memory_bytes, memory_bytes_) - std::min(glance.memory_bytes, memory_bytes_);
    interval_ms_ = change > memory_bytes_ / 64 ? kIntervalMsMin : std::min(interval_ms_ * 2, kIntervalMsMax);
    memory_bytes_ = glance.memory_bytes;
    if (cpu_limit_ms_ > 0 && glance.cpu_ms >= cpu_limit_ms_) return false;
    next_ms_ = now_ms + next_interval(glance.cpu_ms);
    return true;
  }

 private:
  static constexpr std::uint64_t kIntervalMsMin = 20;
  static constexpr std::uint64_t kIntervalMsMax = 1000;

  std::uint64_t next_interval(std::uint64_t cpu_ms) const {
    if (cpu_limit_ms_ == 0) return interval_ms_;
    return std::min(interval_ms_, (cpu_limit_ms_ - cpu_ms) / cores_ + 1);
  }

  std::uint64_t cpu_limit_ms_;  // 0: none
  std::uint64_t cores_;
  std::uint64_t interval_ms_ = kIntervalMsMin;
  std::uint64_t memory_bytes_ = 0;
  std::uint64_t next_ms_;
};

class Supervision {
 public:
  Supervision(const SandboxSpec& spec, const RunIo& io, RunningSandbox& sandbox, std::uint64_t called_ms)
      : spec_(spec),
        io_(io),
        sandbox_(sandbox),
        called_ms_(called_ms),
        deadline_ms_(deadline_ms(called_ms, 0, 0)),
        pace_(spec.limits, monotonic_ms()),
        input_(spec.stdin_source == StdinSource::inherit ? io.stdin_fd : -1, &sandbox.streams().stdin_write),
        output_(sandbox.streams().stdout_read.get(), io.stdout_fd, io.stdout_form, io.capture,
                spec.limits.output.value),
        error_(sandbox.streams().stderr_read.get(), io.stderr_fd, io.stderr_form, io.capture,
               spec.limits.output.value) {}

  // Moves streams until every process of the sandbox is gone. False when the kernel would not end them.
  bool watch_until_ended();

  // Reads what the dead left in the pipes.
  void drain();

  // Hands the rest of the output to its readers, however slow they are.
  void flush();

  KillCause cause() const { return cause_; }
  OutputStream& output() { return output_; }
  OutputStream& error() { return error_; }

 private:
  enum Slot {
    kEnded,
    kReport,
    kRefusal,
    kBroken,
    kCancel,
    kReader,
    kResize,
    kInputSource,
    kInputSink,
    kOutputSource,
    kOutputSink,
    kErrorSource,
    kErrorSink,
    kSlots
  };

  void kill(KillCause cause) {
    if (cause_ != KillCause::none) return;
    cause_ = cause;
    deadline_ms_ = monotonic_ms() + kKillPatienceMs;
    sandbox_.kill();
  }
  std::uint64_t next_wake_ms(std::uint64_t now_ms);
  void move_streams(const std::array<pollfd, kSlots>& ready);
  void resize();

  const SandboxSpec& spec_;
  const RunIo& io_;
  RunningSandbox& sandbox_;
  std::uint64_t called_ms_;
  std::uint64_t deadline_ms_;
  LookPace pace_;
  KillCause cause_ = KillCause::none;
  bool is_reported_ = false;
  InputStream input_;
  OutputStream output_;
  OutputStream error_;
};

bool Supervision::watch_until_ended() {
  while (true) {
    std::array<pollfd, kSlots> wanted{};
    wanted[kEnded] = {sandbox_.ended_fd(), POLLIN, 0};
    wanted[kReport] = {is_reported_ ? -1 : sandbox_.report_fd(), POLLIN, 0};
    wanted[kRefusal] = {sandbox_.refusal_fd(), POLLIN, 0};
    wanted[kBroken] = {cause_ == KillCause::none ? sandbox_.broken_fd() : -1, POLLIN, 0};
    wanted[kCancel] = {cause_ == KillCause::none ? io_.cancel_fd : -1, POLLIN, 0};
    wanted[kReader] = {cause_ == KillCause::none ? io_.reader_fd : -1, 0, 0};
    wanted[kResize] = {io_.resize_fd, POLLIN, 0};
    wanted[kInputSource] = input_.source_poll();
    wanted[kInputSink] = input_.sink_poll();
    wanted[kOutputSource] = output_.source_poll();
    wanted[kOutputSink] = output_.sink_poll();
    wanted[kErrorSource] = error_.source_poll();
    wanted[kErrorSink] = error_.sink_poll();
    const std::uint64_t now = monotonic_ms();
    const std::uint64_t until = next_wake_ms(now);
    const std::uint64_t left = until > now ? until - now : 0;
    const int count = ::poll(wanted.data(), wanted.size(), static_cast<int>(std::min<std::uint64_t>(left, 1U << 30)));
    if (count < 0) continue;  // EINTR
    move_streams(wanted);
    if (wanted[kEnded].revents != 0) return true;
    if (wanted[kReport].revents != 0) {
      is_reported_ = sandbox_.read_report() == RunningSandbox::ReportIs::complete;
    }
    if (wanted[kRefusal].revents != 0) sandbox_.answer_refusal();
    if (wanted[kBroken].revents != 0) kill(KillCause::broken);
    if (wanted[kCancel].revents != 0) kill(KillCause::cancelled);
    if ((wanted[kReader].revents & (POLLERR | POLLHUP)) != 0) kill(KillCause::reader_gone);
    if (wanted[kResize].revents != 0) resize();
    if (pace_.is_due(monotonic_ms()) && !pace_.goes_on(sandbox_.look(), monotonic_ms())) kill(KillCause::cpu);
    (void)next_wake_ms(monotonic_ms());
    if (monotonic_ms() < deadline_ms_) continue;
    if (cause_ != KillCause::none) return false;
    kill(sandbox_.started_us() > 0 ? KillCause::timeout : KillCause::slow_start);
  }
}

// Keeps the deadline of a sandbox that lives up to date, and says when to look at it next.
std::uint64_t Supervision::next_wake_ms(std::uint64_t now_ms) {
  constexpr std::uint64_t kStartIntervalMs = 10;
  if (cause_ != KillCause::none) return deadline_ms_;
  const std::uint64_t started_us = sandbox_.started_us();
  deadline_ms_ = deadline_ms(called_ms_, started_us, spec_.limits.timeout.value);
  const std::uint64_t wake_ms = std::min(deadline_ms_, pace_.next_ms());
  return started_us > 0 ? wake_ms : std::min(wake_ms, now_ms + kStartIntervalMs);
}

// The program's terminal takes the size of the caller's: TIOCGWINSZ of ioctl_tty(2).
void Supervision::resize() {
  char dropped[512];
  (void)::read(io_.resize_fd, dropped, sizeof dropped);
  winsize size{};
  if (::ioctl(io_.terminal_fd, TIOCGWINSZ, &size) == 0) {
    ::ioctl(sandbox_.streams().stdout_read.get(), TIOCSWINSZ, &size);
  }
}

void Supervision::move_streams(const std::array<pollfd, kSlots>& ready) {
  if (ready[kInputSink].revents != 0) input_.write_pending();
  if (ready[kInputSource].revents != 0) input_.read_available();
  if (ready[kOutputSource].revents != 0) output_.read_available();
  if (ready[kErrorSource].revents != 0) error_.read_available();
  if (ready[kOutputSink].revents != 0) output_.write_pending();
  if (ready[kErrorSink].revents != 0) error_.write_pending();
  if (output_.sink_is_gone()) kill(KillCause::reader_gone);
  if (spec_.output_policy == OutputPolicy::kill && (output_.over_limit() || error_.over_limit())) {
    kill(KillCause::output);
  }
}

void Supervision::drain() {
  for (OutputStream* stream : {&output_, &error_}) {
    while (!stream->at_end()) {
      pollfd source{stream->source_fd(), POLLIN, 0};
      if (::poll(&source, 1, kDrainPatienceMs) == 0) break;
      stream->read_available();
    }
  }
}

void Supervision::flush() {
  while (output_.has_pending() || error_.has_pending()) {
    std::array<pollfd, 3> wanted = {output_.sink_poll(), error_.sink_poll(), pollfd{io_.cancel_fd, POLLIN, 0}};
    if (::poll(wanted.data(), wanted.size(), -1) < 0) continue;
    if (wanted[0].revents != 0) output_.write_pending();
    if (wanted[1].revents != 0) error_.write_pending();
    if (wanted[2].revents != 0) return;
  }
}

std::string sentence_of(std::string_view limit_name, const Limits& limits) {
  const LimitRow& row = limit_row(limit_name);
  return limit_sentence(row, (limits.*row.field).value);
}

std::string signal_sentence(int signal, const Limits& limits) {
  const char* const name = sigabbrev_np(signal);
  std::string sentence = fmt::format("killed by signal {} (SIG{})", signal, name != nullptr ? name : "RT");
  // How a full tmpfs ends a program that writes to a mapping of it. That it was full can't always be seen afterwards:
  // what the program leaves may be removed as soon as it is dead, as Python's multiprocessing does.
  if (signal == SIGBUS) {
    sentence += fmt::format(": a mapped file was cut short, or had no more room in the {} of --tmp-size",
                            format_limit(LimitUnit::bytes, limits.tmp_size.value));
  }
  return sentence;
}

void judge(const SandboxSpec& spec, KillCause cause, const TierExit& exit, int sink_errno, Outcome* outcome) {
  const auto conclude = [&](RunStatus status, std::string reason) {
    outcome->status = status;
    outcome->reason = std::move(reason);
  };
  switch (cause) {
    case KillCause::timeout:
      return conclude(RunStatus::timeout, sentence_of("timeout", spec.limits));
    case KillCause::slow_start:
      outcome->error = Error{ErrorCode::start_failed,
                             fmt::format("the program could not be started within {}; this host is too busy",
                                         format_limit(LimitUnit::milliseconds, kStartPatienceMs))};
      return conclude(RunStatus::denied, outcome->error->message);
    case KillCause::cpu:
      return conclude(RunStatus::cpu, sentence_of("cpu_time", spec.limits));
    case KillCause::cancelled:
      return conclude(RunStatus::cancelled, "stopped by the caller");
    case KillCause::reader_gone:
      if (sink_errno == EPIPE || sink_errno == 0) {
        return conclude(RunStatus::cancelled, "stopped because the reader of its output went away");
      }
      outcome->error = Error{ErrorCode::output_lost,
                             fmt::format("stopped because its output can't be written: {}", errno_text(sink_errno))};
      return conclude(RunStatus::internal, outcome->error->message);
    case KillCause::output:
      return conclude(RunStatus::output, fmt::format("killed at the output limit of {}",
                                                     format_limit(LimitUnit::bytes, spec.limits.output.value)));
    case KillCause::broken:
    case KillCause::none:
      break;
  }
  if (exit.error) {
    outcome->error = exit.error;
    const bool is_ours = exit.error->code == ErrorCode::internal;
    return conclude(is_ours ? RunStatus::internal : RunStatus::denied, exit.error->message);
  }
  if (exit.verdict) return conclude(exit.verdict->status, exit.verdict->reason);
  if (exit.exit_code == 0) return conclude(RunStatus::ok, "");
  if (exit.was_tampered_with) {
    return conclude(RunStatus::tampered, "the sandbox's user-space kernel came to harm, and all of it was stopped");
  }
  if (exit.hit_memory_limit) {
    const std::string sentence = sentence_of("memory", spec.limits);
    const bool is_whole = exit.signal == SIGKILL;
    return conclude(RunStatus::memory, is_whole ? sentence : "failed after one of its processes was " + sentence);
  }
  if (exit.hit_tasks_limit) return conclude(RunStatus::pids, "failed; " + sentence_of("tasks", spec.limits));
  if (exit.hit_disk_limit) return conclude(RunStatus::disk, sentence_of("tmp_size", spec.limits));
  if (exit.hit_inode_limit) return conclude(RunStatus::disk, sentence_of("tmp_inodes", spec.limits));
  if (exit.hit_file_limit) return conclude(RunStatus::disk, sentence_of("file_size", spec.limits));
  if (exit.has_file_at_limit) {
    return conclude(RunStatus::disk, fmt::format("failed with a file that had reached the limit of {} for one",
                                                 format_limit(LimitUnit::bytes, spec.limits.file_size.value)));
  }
  if (exit.signal) return conclude(RunStatus::signal, signal_sentence(*exit.signal, spec.limits));
  conclude(RunStatus::error, "");
}

// Whether `path` lies in `folder` or is it, wherever links lead.
bool is_in(const std::string& path, const std::string& folder) {
  std::error_code error;
  const std::string inner = std::filesystem::canonical(path, error).string() + "/";
  const std::string outer = std::filesystem::canonical(folder, error).string() + "/";
  return inner.starts_with(outer) || outer == "//";
}

// What the caller gets back of the sandbox's files; opened before the start, so that what can't be used is a refusal.
class Takings {
 public:
  static Result<Takings> open(const SandboxSpec& spec) {
    Takings takings;
    takings.destinations_ = TRY(open_destinations(spec.collect));
    if (spec.workspace.empty()) return takings;
    takings.workspace_ =
        std::make_unique<Workspace>(TRY(open_workspace(spec.workspace, spec.limits.workspace_entries.value)));
    const auto lookup = [](const char* name) -> const char* { return std::getenv(name); };
    const std::string changes_folder = TRY(change_store_folder(lookup));
    const ChangeStore store = TRY(ChangeStore::open(changes_folder));
    if (is_in(changes_folder, spec.workspace)) {
      return fail(ErrorCode::bad_workspace,
                  fmt::format("--workspace {}: {}, where Belljar keeps changes, lies in it, and a program could alter "
                              "those; choose a folder of one project",
                              spec.workspace, changes_folder));
    }
    takings.changes_ = std::make_unique<NewChangeset>(TRY(store.begin()));
    return takings;
  }

  // Also of a program that was killed: what it had written is there.
  Result<void> take(const SandboxSpec& spec, RunningSandbox& sandbox, int cancel_fd, Outcome* outcome) {
    if (spec.collect.empty() && !workspace_) return {};
    auto taken = sandbox.take_writable_places();
    if (!taken && taken.error().code == ErrorCode::bad_collect) {
      for (const CollectSpec& collect : spec.collect) {
        outcome->files_skipped.push_back({collect.source, taken.error().message});
      }
      outcome->files_truncated = true;
      return {};
    }
    const std::vector<WritablePlace> writable = TRY(std::move(taken));
    std::vector<CollectPlace> places;
    for (const WritablePlace& place : writable) {
      if (place.kind == WritablePlace::Kind::own) places.push_back({place.path, place.folder.get()});
    }
    Collected collected = collect_files(spec, places, destinations_, cancel_fd);
    outcome->files = std::move(collected.files);
    outcome->files_skipped = std::move(collected.skipped);
    outcome->files_truncated = collected.truncated;
    for (const WritablePlace& place : writable) {
      if (place.kind != WritablePlace::Kind::own) TRY_VOID(keep_changes(spec, place, cancel_fd, outcome));
    }
    return {};
  }

 private:
  Result<void> keep_changes(const SandboxSpec& spec, const WritablePlace& place, int cancel_fd, Outcome* outcome) {
    if (place.host_device != workspace_->device || place.host_inode != workspace_->inode) {
      return fail(
          ErrorCode::bad_workspace,
          fmt::format("--workspace {}: another folder took its place while the sandbox started; what was changed "
                      "is not kept",
                      spec.workspace));
    }
    const WorkspaceView view =
        place.kind == WritablePlace::Kind::overlay ? WorkspaceView::overlay : WorkspaceView::copy;
    Captured captured =
        capture_changes(spec, *workspace_, place.folder.get(), view, changes_->contents_fd(), cancel_fd);
    std::ranges::move(captured.files, std::back_inserter(outcome->files));
    std::ranges::move(captured.skipped, std::back_inserter(outcome->files_skipped));
    outcome->files_truncated = outcome->files_truncated || captured.truncated;
    if (captured.changeset.changes.empty()) return {};
    outcome->changes_id = TRY(changes_->publish(captured.changeset));
    return {};
  }

  std::vector<CollectDestination> destinations_;
  std::unique_ptr<Workspace> workspace_;  // with SandboxSpec::workspace, as are the changes
  std::unique_ptr<NewChangeset> changes_;
};

// Why a sandbox was ended that is gone now. What a program does just before it would have been killed counts.
KillCause settle(KillCause cause, const TierExit& exit) {
  const bool has_ended_by_itself = !exit.ended_unreported && (exit.exit_code || exit.signal);
  const bool is_race = cause == KillCause::timeout || cause == KillCause::cpu || cause == KillCause::cancelled;
  return has_ended_by_itself && is_race ? KillCause::none : cause;
}

bool is_readable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return fd >= 0 && ::poll(&waiting, 1, 0) > 0;
}

// Nothing ends a process that the kernel keeps. It keeps its uid range and cgroups, and the watcher waits for it; the
// caller gets what was written until now, and the reason for which it was killed.
void leave_to_watcher(const SandboxSpec& spec, std::unique_ptr<RunningSandbox> sandbox, Supervision& supervision,
                      Outcome* outcome) {
  constexpr const char* kStillThere =
      "the kernel had not ended all processes of the sandbox 10 s after they were killed; what it holds is removed "
      "when it "
      "has, by itself or by `belljar gc`";
  supervision.drain();
  supervision.flush();
  TierExit exit;
  exit.error = Error{ErrorCode::internal, kStillThere};
  judge(spec, supervision.cause(), exit, supervision.output().sink_errno(), outcome);
  outcome->standard_output = supervision.output().take();
  outcome->standard_error = supervision.error().take();
  outcome->warnings = {kStillThere};
  sandbox.release()->abandon();  // the object stays: its processes may write to its pipes
}

Result<Outcome> run_to_end(const SandboxSpec& spec, const RunIo& io) {
  TRY_VOID(validate(spec));
  const Tier* tier = TRY(find_tier(spec.tier));
  if (const Result<void> prepared = tier->prepare(spec, io.cancel_fd); !prepared) {
    if (!is_readable(io.cancel_fd)) return std::unexpected(prepared.error());
    return Outcome{.status = RunStatus::cancelled,
                   .reason = "stopped by the caller",
                   .limits = spec.limits,
                   .isolation = {.tier = spec.tier}};
  }
  const std::uint64_t called_us = monotonic_us();
  const SigpipeBlock no_sigpipe;
  Takings takings = TRY(Takings::open(spec));
  std::unique_ptr<RunningSandbox> sandbox = TRY(tier->start(spec));
  Supervision supervision(spec, io, *sandbox, called_us / 1000);
  if (io.on_started) io.on_started();

  Outcome outcome;
  outcome.limits = spec.limits;
  outcome.isolation = sandbox->isolation();
  if (!supervision.watch_until_ended()) {
    outcome.duration_ms = monotonic_ms() - called_us / 1000;
    leave_to_watcher(spec, std::move(sandbox), supervision, &outcome);
    return outcome;
  }
  const std::uint64_t ended_us = monotonic_us();
  const std::uint64_t started_us = sandbox->started_us();
  outcome.duration_ms = (ended_us - (started_us > 0 ? started_us : called_us)) / 1000;
  supervision.drain();
  TierExit exit = sandbox->finish();
  KillCause cause = settle(supervision.cause(), exit);
  if (!exit.error) {
    // A caller who stopped the program still gets what it wrote.
    const int cancel_fd = supervision.cause() == KillCause::cancelled ? -1 : io.cancel_fd;
    TRY_VOID(takings.take(spec, *sandbox, cancel_fd, &outcome));
  }
  supervision.flush();
  // Where this process was stopped (SIGSTOP) past the deadline, the watcher kept it.
  if (cause == KillCause::none && exit.ended_unreported && !exit.hit_memory_limit && started_us > 0 &&
      ended_us / 1000 >= deadline_ms(0, started_us, spec.limits.timeout.value)) {
    cause = KillCause::timeout;
  }
  // Also what was written last must arrive: lost output is no success, though the program could not know.
  if (cause == KillCause::none && supervision.output().sink_is_gone()) cause = KillCause::reader_gone;
  judge(spec, cause, exit, supervision.output().sink_errno(), &outcome);
  outcome.exit_code = exit.exit_code;
  outcome.signal = exit.signal;
  outcome.usage = exit.usage;
  if (started_us > 0) outcome.usage.start_us = started_us - called_us;
  outcome.denials = std::move(exit.denials);
  outcome.network = std::move(exit.network);
  outcome.standard_output = supervision.output().take();
  outcome.standard_error = supervision.error().take();
  outcome.warnings = near_limits(outcome);
  return outcome;
}

// Messages quote names that the caller took from somewhere: of files, scripts, programs.
void make_harmless(std::string* message) {
  *message = one_line(*message, kMessageBytesMax);
}

}  // namespace

Result<Outcome> run(const SandboxSpec& spec, const RunIo& io) {
  Result<Outcome> outcome = run_to_end(spec, io);
  if (!outcome) {
    make_harmless(&outcome.error().message);
    return outcome;
  }
  make_harmless(&outcome->reason);
  for (SkippedFile& file : outcome->files_skipped) make_harmless(&file.reason);
  if (auto& error = outcome->error) make_harmless(&error->message);
  return outcome;
}

}  // namespace belljar
