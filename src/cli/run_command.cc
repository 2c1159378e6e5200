#include "cli/run_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/options.h"
#include "cli/policy_check.h"
#include "spec/checks.h"
#include "spec/errors.h"

namespace belljar {
namespace {

// The options that are no part of the policy.
enum class RunFlag : std::size_t {
  policy,
  tty,
  strace,
  json,
  status_fd,
  profile,
  keep,
  limits,
  trust,
  explain,
  help,
  count
};

constexpr Option kRunOptions[] = {
    {"policy", "FILE", "read a policy file (TOML); flags win over it, and later files over earlier ones", Times::any},
    {"tty", "", "give the program a terminal of its own, joined to this one; by default for 24 h"},
    {"strace", "", "in the kernel tier: print the program's system calls to stderr, a line each"},
    {"json", "", "write the result record to stdout, with the program's output in it"},
    {"status-fd", "N", "write the result record, without output, to descriptor N"},
    {"profile", "NAME", "remember what the run used under this name; belljar calibrate makes limits of it"},
    {"keep", "", "with --profile: remember the program's text and output too"},
    {"limits", "auto:NAME", "take limits that are not named from the runs of this profile"},
    {"trust", "WORD", "with --isolation auto: untrusted, reviewed or own, as you vouch for the program"},
    {"explain", "", "with --isolation auto: say which tier was chosen, and why"},
    {"help", "", "show this help"},
};
static_assert(std::size(kRunOptions) == static_cast<std::size_t>(RunFlag::count));

std::string_view unit_argument(LimitUnit unit) {
  switch (unit) {
    case LimitUnit::bytes:
      return "SIZE";
    case LimitUnit::milliseconds:
      return "TIME";
    case LimitUnit::millicpus:
      return "CORES";
    case LimitUnit::count:
      break;
  }
  return "NUMBER";
}

// What adds to a list may be given again.
Times times_of(const PolicyFlag& flag) {
  const auto key = std::ranges::find(policy_keys(), flag.key, &PolicyKey::name);
  return key->form == PolicyForm::text ? Times::once : Times::any;
}

// One table for reading: first the limits, then the policy's flags, then kRunOptions.
std::vector<Option> all_options() {
  std::vector<Option> options;
  options.reserve(limit_rows().size() + policy_flags().size() + std::size(kRunOptions));
  for (const LimitRow& row : limit_rows()) options.push_back({row.flag, unit_argument(row.unit), row.what});
  for (const PolicyFlag& flag : policy_flags()) {
    options.push_back({flag.name, flag.argument, flag.what, times_of(flag)});
  }
  options.insert(options.end(), std::begin(kRunOptions), std::end(kRunOptions));
  return options;
}

// Which of kRunOptions an index of all_options() is; nothing for limits and flags of the policy.
std::optional<RunFlag> run_flag(std::size_t option) {
  const std::size_t before = limit_rows().size() + policy_flags().size();
  if (option < before) return std::nullopt;
  return static_cast<RunFlag>(option - before);
}

Result<void> apply_files(RunPolicy& policy, const ParsedOptions& parsed) {
  for (const GivenOption& given : parsed.given) {
    if (run_flag(given.option) == RunFlag::policy) TRY_VOID(apply_policy_file(policy, std::string(given.value)));
  }
  return {};
}

Result<void> apply_flags(RunPolicy& policy, const ParsedOptions& parsed) {
  policy.begin_layer();
  const auto rows = limit_rows();
  const auto flags = policy_flags();
  for (const GivenOption& given : parsed.given) {
    if (given.option < rows.size()) {
      const LimitRow& row = rows[given.option];
      TRY_VOID(policy.set_limit(row, given.value, written_option(row.flag)));
    } else if (given.option < rows.size() + flags.size()) {
      const PolicyFlag& flag = flags[given.option - rows.size()];
      const std::string_view value = flag.argument.empty() ? flag.fixed_value : given.value;
      TRY_VOID((policy.*flag.set)(value, written_option(flag.name)));
    }
  }
  return {};
}

bool is_given(const ParsedOptions& parsed, RunFlag flag) {
  for (const GivenOption& given : parsed.given) {
    if (run_flag(given.option) == flag) return true;
  }
  return false;
}

Result<int> parse_status_fd(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::bad_value, fmt::format("--status-fd: {} {}", quote(text), why));
  };
  int fd = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (error != std::errc{} || end != text.data() + text.size() || fd < 0) {
    return wrong("is not a descriptor; write a number, such as 3 with 3>status.json after the command");
  }
  const int mode = ::fcntl(fd, F_GETFL);  // fcntl(2)
  if (mode < 0) return wrong(fmt::format("is not open; open it in the shell with {}>status.json", fd));
  if ((mode & O_ACCMODE) == O_RDONLY) return wrong("is not open for writing");
  return fd;
}

Result<std::string> parse_trust(std::string_view word) {
  for (const std::string_view known : {"untrusted", "reviewed", "own"}) {
    if (word == known) return std::string(word);
  }
  return fail(ErrorCode::bad_value,
              fmt::format("--trust: {} is not known; write untrusted, reviewed or own", quote(word)));
}

Result<std::string> parse_auto_limits(std::string_view text) {
  constexpr std::string_view kPrefix = "auto:";
  if (!text.starts_with(kPrefix)) {
    return fail(ErrorCode::bad_value,
                fmt::format("--limits: {} is not known; write auto:NAME with a profile's name", quote(text)));
  }
  text.remove_prefix(kPrefix.size());
  TRY_VOID(check_profile_name(text, "--limits"));
  return std::string(text);
}

// The report's options are filled in as far as they are right, also when an error is returned.
Result<void> read_run_options(const ParsedOptions& parsed, RunOptions& options) {
  options.json = is_given(parsed, RunFlag::json);
  options.explain = is_given(parsed, RunFlag::explain);
  for (const GivenOption& given : parsed.given) {
    const std::optional<RunFlag> flag = run_flag(given.option);
    if (flag == RunFlag::status_fd) options.status_fd = TRY(parse_status_fd(given.value));
    if (flag == RunFlag::trust) options.trust = TRY(parse_trust(given.value));
    if (flag == RunFlag::limits) options.limits_of = TRY(parse_auto_limits(given.value));
    if (flag == RunFlag::keep) options.keep = true;
    if (flag != RunFlag::profile) continue;
    TRY_VOID(check_profile_name(given.value, "--profile"));
    options.profile = given.value;
  }
  if (options.keep && options.profile.empty()) {
    return fail(ErrorCode::usage, "--keep says what to remember of a run; name it with --profile NAME");
  }
  return {};
}

void set_program(SandboxSpec& spec, const ParsedOptions& parsed) {
  auto& arguments = parsed.after_dashes ? spec.command : spec.script_arguments;
  auto operands = parsed.operands;
  if (!parsed.after_dashes && !operands.empty()) {
    spec.script = operands[0];
    operands = operands.subspan(1);
  }
  arguments.assign(operands.begin(), operands.end());
}

// A session at a terminal is as long and as talkative as its user wants, unless limits for these are named.
Result<void> set_terminal(SandboxSpec& spec, const ParsedOptions& parsed) {
  if (!is_given(parsed, RunFlag::tty)) return {};
  if (is_given(parsed, RunFlag::json)) {
    return fail(ErrorCode::usage,
                "--tty and --json exclude each other; --status-fd N writes the record beside a terminal");
  }
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0) {
    return fail(ErrorCode::usage, "--tty needs a terminal as stdin and stdout; leave it out to use pipes and files");
  }
  spec.terminal = TerminalSpec{size.ws_row, size.ws_col};
  constexpr std::uint64_t kDayMs = std::uint64_t{24} * 60 * 60 * 1000;
  Limits& limits = spec.limits;
  if (limits.timeout.source == LimitSource::preset) limits.timeout.value = kDayMs;
  if (limits.output.source == LimitSource::preset) limits.output.value = kTiB;
  const char* const kind = std::getenv("TERM");
  const bool is_named =
      std::ranges::any_of(spec.environment, [](const auto& variable) { return variable.name == "TERM"; });
  if (kind != nullptr && !is_named) spec.environment.push_back({"TERM", kind});
  return {};
}

Result<SandboxSpec> make_spec(const ParsedOptions& parsed) {
  if (parsed.error) return std::unexpected(*parsed.error);
  RunPolicy policy;
  TRY_VOID(apply_files(policy, parsed));
  TRY_VOID(apply_flags(policy, parsed));
  if (parsed.operands.empty() && policy.spec().image.empty()) {
    return fail(ErrorCode::usage,
                "there is nothing to run; write belljar run SCRIPT [ARGS] or belljar run -- COMMAND [ARGS]");
  }
  SandboxSpec spec = TRY(policy.resolve([](const char* name) -> const char* { return std::getenv(name); }));
  set_program(spec, parsed);
  TRY_VOID(set_terminal(spec, parsed));
  spec.traces_calls = is_given(parsed, RunFlag::strace);
  if (!parsed.after_dashes && !parsed.operands.empty() && spec.script.empty()) {
    return fail(ErrorCode::usage, "the script's name is empty");
  }
  TRY_VOID(validate(spec));
  return spec;
}

// The two belong together.
Result<void> check_trust(const SandboxSpec& spec, const RunOptions& options) {
  const bool is_auto = spec.tier == kAutoTier;
  if (is_auto && options.trust.empty()) {
    return fail(ErrorCode::usage,
                "--isolation auto chooses by how far you trust the program; add --trust untrusted, reviewed or own");
  }
  if (is_auto || (options.trust.empty() && !options.explain)) return {};
  return fail(ErrorCode::usage, fmt::format("{} is for --isolation auto; the tier is named: {}",
                                            options.trust.empty() ? "--explain" : "--trust", spec.tier));
}

Result<std::string> show_policy(const ParsedOptions& parsed) {
  if (parsed.error) return std::unexpected(*parsed.error);
  if (!parsed.operands.empty()) {
    return fail(ErrorCode::usage, fmt::format("policy show takes options only, not {}", quote(parsed.operands[0])));
  }
  for (const RunFlag flag : {RunFlag::tty, RunFlag::strace, RunFlag::json, RunFlag::status_fd, RunFlag::profile,
                             RunFlag::keep, RunFlag::limits, RunFlag::trust, RunFlag::explain}) {
    if (!is_given(parsed, flag)) continue;
    const std::string written = written_option(kRunOptions[static_cast<std::size_t>(flag)].name);
    return fail(ErrorCode::usage, fmt::format("policy show does not take {}; it prints TOML", written));
  }
  RunPolicy policy;
  TRY_VOID(apply_files(policy, parsed));
  TRY_VOID(apply_flags(policy, parsed));
  return policy_to_toml(policy);
}

// Any user of the host can read a command line (proc(5)): takes out the values of -e NAME=VALUE once they have been
// read.
void hide_values(const ParsedOptions& parsed) {
  const std::size_t limits = limit_rows().size();
  for (const GivenOption& given : parsed.given) {
    if (given.option < limits || given.option >= limits + policy_flags().size()) continue;
    if (policy_flags()[given.option - limits].name != "e") continue;
    const std::size_t equals = given.value.find('=');
    if (equals == std::string_view::npos) continue;
    // The text is the process's own argument memory, which may be written.
    char* const value = const_cast<char*>(given.value.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    std::fill(value + equals + 1, value + given.value.size(), '*');
  }
}

}  // namespace

std::string run_help() {
  std::string out =
      "usage: belljar run [OPTIONS] SCRIPT [ARGS]\n"
      "       belljar run [OPTIONS] -- COMMAND [ARGS]\n"
      "       belljar run [OPTIONS] --image NAME|PATH     (the program that the image names)\n\n"
      "Runs a script (.py .sh .js .pl, or with a #! line) or a command of the image in a new\n"
      "sandbox. Options come before SCRIPT; everything after it belongs to the script.\n\n"
      "Limits:\n";
  std::vector<std::string> texts;
  std::vector<Option> limits;
  texts.reserve(limit_rows().size());
  for (const LimitRow& row : limit_rows()) {
    texts.push_back(fmt::format("{} (default {})", row.what, format_limit(row, row.preset)));
    limits.push_back({row.flag, unit_argument(row.unit), texts.back()});
  }
  out += options_help(limits);
  std::vector<Option> flags;
  for (const PolicyFlag& flag : policy_flags()) flags.push_back({flag.name, flag.argument, flag.what});
  out += "\nWhat the program sees:\n" + options_help(flags);
  out += "\nPolicy and result:\n" + options_help(kRunOptions);
  out +=
      "\nSIZE is in bytes or has K, M, G or T after it; TIME is in seconds or has ms, s, m, h or d.\n"
      "Exit status: the program's own; 124 limit or deadline, 125 refused by Belljar, 126 not\n"
      "executable, 127 not found, 128+n signal n. --json and --status-fd tell them apart.\n";
  return out;
}

std::string policy_help() {
  return "usage: belljar policy show [--policy FILE] [OPTIONS of belljar run]\n"
         "       belljar policy check --url URL [FILE...]\n\n"
         "show prints the policy that a run with these options would have, as a policy file (TOML). check says\n"
         "whether policy files let a program reach a URL, and by which rule.\n";
}

int run_command(std::span<char* const> arguments, const RunExecutor& execute) {
  const std::vector<Option> table = all_options();
  const ParsedOptions parsed = parse_options(table, arguments);
  if (is_given(parsed, RunFlag::help)) {
    return print(run_help());
  }
  RunOptions options;
  const Result<void> read = read_run_options(parsed, options);
  const Result<SandboxSpec> spec = make_spec(parsed);
  hide_values(parsed);
  if (parsed.error) return report_refusal(*parsed.error, options);
  if (!read) return report_refusal(read.error(), options, spec ? &*spec : nullptr);
  if (!spec) return report_refusal(spec.error(), options);
  if (const Result<void> checked = check_trust(*spec, options); !checked) {
    return report_refusal(checked.error(), options, &*spec);
  }
  return execute(*spec, options);
}

int policy_command(std::span<char* const> arguments) {
  const std::string_view verb = arguments.empty() ? "" : arguments[0];
  if (verb == "--help" || verb == "-h") return print(policy_help());
  if (verb == "check") return policy_check_command(arguments.subspan(1));
  if (verb != "show") {
    return report_refusal(
        {ErrorCode::usage,
         verb.empty()
             ? "policy needs a word after it: belljar policy show, or belljar policy check"
             : fmt::format("unknown command policy {}; there are policy show and policy check", one_line(verb))},
        {});
  }
  const std::vector<Option> table = all_options();
  const ParsedOptions parsed = parse_options(table, arguments.subspan(1));
  const bool wants_help = is_given(parsed, RunFlag::help);
  const Result<std::string> shown = wants_help ? policy_help() : show_policy(parsed);
  if (!shown) return report_refusal(shown.error(), {});
  return print(*shown);
}

void say(std::string_view line) {
  constexpr std::size_t kLineBytesMax = 8192;
  // A closed stderr is the caller's choice.
  (void)write_all(STDERR_FILENO, fmt::format("belljar: {}\n", one_line(line, kLineBytesMax)));
}

int print(std::string_view text) {
  const auto written = write_all(STDOUT_FILENO, text);
  if (written) return 0;
  say(fmt::format("the output can't be written: {}", errno_text(written.error().value)));
  return error_exit_status(ErrorCode::output_lost);
}

int report_error(const Error& error, bool json) {
  say(error.message);
  if (json) {
    const Json report = {{"error", {{"code", error_name(error.code)}, {"message", error.message}}}};
    (void)write_all(STDOUT_FILENO, dump_json(report) + "\n");  // the exit status tells as well
  }
  return error_exit_status(error.code);
}

bool write_record(const Outcome& outcome, const RunOptions& options) {
  const auto write_line = [&outcome](int fd, StreamContent content) {
    const auto written = write_all(fd, outcome_to_json(outcome, content) + "\n");
    if (written) return true;
    say(fmt::format("the result record can't be written: {}", errno_text(written.error().value)));
    return false;
  };
  bool all_written = true;
  if (options.json) all_written = write_line(STDOUT_FILENO, StreamContent::included);
  if (options.status_fd) all_written = write_line(*options.status_fd, StreamContent::omitted) && all_written;
  return all_written;
}

Outcome refused_outcome(const Error& error, const SandboxSpec& spec) {
  const RunStatus status = error.code == ErrorCode::internal ? RunStatus::internal : RunStatus::denied;
  Outcome outcome{.status = status, .reason = error.message, .error = error, .limits = spec.limits};
  if (spec.tier != kAutoTier) outcome.isolation.tier = spec.tier;
  return outcome;
}

int report_refusal(const Error& error, const RunOptions& options, const SandboxSpec* spec) {
  say(error.message);
  Outcome outcome = refused_outcome(error, spec != nullptr ? *spec : SandboxSpec{.tier = kAutoTier});
  outcome.has_limits = spec != nullptr;
  write_record(outcome, options);
  return error_exit_status(error.code);
}

}  // namespace belljar
