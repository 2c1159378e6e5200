#include "cli/commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/fd.h"
#include "base/utf8.h"
#include "cli/calibrate_command.h"
#include "cli/changes_command.h"
#include "cli/execute.h"
#include "cli/image_command.h"
#include "cli/options.h"
#include "cli/run_command.h"
#include "cli/runs_command.h"
#include "spec/errors.h"
#include "spec/names.h"

namespace belljar {
namespace {

using Arguments = std::span<char* const>;

int usage_error(std::string message) {
  return report_refusal({ErrorCode::usage, std::move(message)}, {});
}

int run(Arguments arguments) {
  return run_command(arguments, execute_run);
}

constexpr std::string_view kDoctorHelp =
    "usage: belljar doctor [--json]\n\n"
    "Says for each wall and limit whether this host enforces it, holds it more weakly or lacks it,\n"
    "why, and how to get it.\n";

int doctor(Arguments arguments) {
  constexpr Option kOptions[] = {{"json", "", "print JSON"}, {"help", "", "show this help"}};
  const ParsedOptions parsed = parse_options(kOptions, arguments);
  if (parsed.error) return report_refusal(*parsed.error, {});
  if (!parsed.operands.empty())
    return usage_error(fmt::format("doctor takes options only, not {}", quote(parsed.operands[0])));
  return is_given(parsed, 1) ? print(kDoctorHelp) : run_doctor(is_given(parsed, 0));
}

constexpr std::string_view kGcHelp =
    "usage: belljar gc\n\n"
    "Removes control groups and folders that a killed Belljar left behind, and the unfinished sets of\n"
    "changes to a workspace among your own. Running sandboxes are left alone.\n";

int gc(Arguments arguments) {
  constexpr Option kOptions[] = {{"help", "", "show this help"}};
  const ParsedOptions parsed = parse_options(kOptions, arguments);
  if (parsed.error) return report_refusal(*parsed.error, {});
  if (!parsed.operands.empty())
    return usage_error(fmt::format("gc takes no arguments, not even {}", quote(parsed.operands[0])));
  return parsed.given.empty() ? run_gc() : print(kGcHelp);
}

constexpr std::string_view kVersionHelp =
    "usage: belljar version [--json]\n\n"
    "Says which version and commit this is, which tiers are installed, what is built in, and with\n"
    "what it was built. belljar --version is the same.\n";

int version(Arguments arguments) {
  constexpr Option kOptions[] = {{"json", "", "print JSON"}, {"help", "", "show this help"}};
  const ParsedOptions parsed = parse_options(kOptions, arguments);
  if (parsed.error) return report_refusal(*parsed.error, {});
  if (!parsed.operands.empty())
    return usage_error(fmt::format("version takes options only, not {}", quote(parsed.operands[0])));
  return is_given(parsed, 1) ? print(kVersionHelp) : run_version(is_given(parsed, 0));
}

int help(Arguments arguments);

struct Command {
  std::string_view name;
  std::string_view arguments;
  std::string_view what;
  int (*main)(Arguments arguments);
};

constexpr Command kCommands[] = {
    {"run", "SCRIPT [ARGS]", "run a script or a command in a new sandbox", run},
    {"image", "load|ls|rm ...", "bring root file systems for run --image", image_command},
    {"changes", "list|diff|apply ...", "look at what runs changed in a workspace, and apply it", changes_command},
    {"policy", "show|check", "print the policy of a run; ask what it lets reach", policy_command},
    {"runs", "[--profile P]", "list the runs that run --profile recorded", runs_command},
    {"show", "RUN", "show what is recorded of a run", show_command},
    {"calibrate", "--profile P", "propose limits from what recorded runs used", calibrate_command},
    {"doctor", "[--json]", "say what this host can enforce, and what not", doctor},
    {"gc", "", "remove what a killed Belljar left behind", gc},
    {"version", "[--json]", "print the version, the commit and what is built in", version},
    {"help", "[COMMAND]", "show help", help},
};

const Command* find_command(std::string_view name) {
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version" || name == "-V") name = "version";
  const auto* found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                   [&](const Command& command) { return command.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

int unknown_command(std::string_view written) {
  const std::string shown = one_line(written, 120);
  if (written.starts_with('-')) {
    return usage_error(
        fmt::format("unknown option {}; options stand after a command: belljar run {} ...", shown, shown));
  }
  std::vector<std::string_view> known;
  for (const Command& command : kCommands) known.push_back(command.name);
  const std::string_view near = nearest_name(written, known);
  if (near.empty() && written.find_first_of("./") != std::string_view::npos) {
    return usage_error(fmt::format("unknown command {0}; to run a script: belljar run {0}", shown));
  }
  return usage_error(
      fmt::format("unknown command {}; {}", shown,
                  near.empty() ? "belljar --help lists the commands" : fmt::format("did you mean {}?", near)));
}

int help(Arguments arguments) {
  if (arguments.empty()) return print(main_help());
  const Command* command = find_command(arguments[0]);
  if (command == nullptr) return unknown_command(arguments[0]);
  if (command->main == help) return print(main_help());
  char help_option[] = "--help";
  char* const help_argument = help_option;
  return command->main(Arguments(&help_argument, 1));
}

}  // namespace

std::string main_help() {
  std::string out =
      "Belljar runs programs that nobody has read, in a sandbox of their own: no network, none of\n"
      "the host's files, processes or secrets, and limits on memory, time and everything else.\n\n"
      "usage: belljar COMMAND ...\n\n";
  for (const Command& command : kCommands) {
    out += fmt::format("  {:<21} {}\n", fmt::format("{} {}", command.name, command.arguments), command.what);
  }
  out +=
      "\n"
      "Examples:\n"
      "  belljar run script.py                      safe defaults: 256M, one core, 30 s\n"
      "  cat data.csv | belljar run analyse.py      standard input passes through\n"
      "  belljar run --memory 1G --timeout 5m --mount ./data:/data job.py\n"
      "  belljar run -e TOKEN --mount ./out:/out:rw --workdir /out -- python3 -c 'print(1)'\n"
      "  belljar run --json script.py               a record of how it ended, with its output\n"
      "\n"
      "belljar COMMAND --help tells more. The exit status of run is the program's own, or 124 for\n"
      "a limit or the deadline, 125 refused, 126 not executable, 127 not found, 128+n signal n.\n";
  return out;
}

int command_line(std::span<char* const> arguments) {
  if (arguments.empty()) {
    (void)write_all(STDERR_FILENO, main_help());  // a closed stderr is the caller's choice
    return error_exit_status(ErrorCode::usage);
  }
  const Command* command = find_command(arguments[0]);
  return command != nullptr ? command->main(arguments.subspan(1)) : unknown_command(arguments[0]);
}

}  // namespace belljar
