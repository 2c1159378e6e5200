#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "spec/errors.h"
#include "spec/names.h"
#include "spec/policy.h"

namespace belljar {
namespace {

// What other tools call it.
struct OtherName {
  std::string_view theirs;
  std::string_view ours;
};

constexpr OtherName kOtherNames[] = {
    {"env", "e"},
    {"volume", "mount"},
    {"v", "mount"},
    {"bind", "mount"},
    {"cwd", "workdir"},
    {"w", "workdir"},
    {"chdir", "workdir"},
    {"tier", "isolation"},
    {"m", "memory"},
    {"ram", "memory"},
    {"t", "timeout"},
    {"time-limit", "timeout"},
    {"wall-time", "timeout"},
    {"pids-limit", "tasks"},
    {"pids", "tasks"},
    {"nofile", "open-files"},
    {"config", "policy"},
};

std::optional<std::size_t> find_option(std::span<const Option> options, std::string_view name) {
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const Option& option) { return option.name == name; });
  if (found == options.end()) return std::nullopt;
  return static_cast<std::size_t>(found - options.begin());
}

Error unknown_option(std::span<const Option> options, std::string_view written) {
  std::string_view name = written.substr(written.starts_with("--") ? 2 : 1);
  name = name.substr(0, name.find('='));
  const std::string_view shown = written.substr(0, written.find('='));
  if (const std::string_view refusal = network_refusal(name); !refusal.empty()) {
    return {ErrorCode::usage, fmt::format("{}: {}", one_line(shown), refusal)};
  }
  std::string_view meant;
  for (const OtherName& other : kOtherNames) {
    if (other.theirs == name && find_option(options, other.ours)) meant = other.ours;
  }
  if (meant.empty()) {
    std::vector<std::string_view> known;
    for (const Option& option : options) known.push_back(option.name);
    meant = nearest_name(name, known);
  }
  return {ErrorCode::usage,
          fmt::format("unknown option {}; {}", one_line(shown),
                      meant.empty() ? "--help lists the options" : "did you mean " + written_option(meant) + "?")};
}

// What an argument stands for: -h is --help everywhere.
std::string_view meant_by(std::string_view argument) {
  return argument == "-h" ? "--help" : argument;
}

// One argument taken apart.
struct OptionText {
  std::string_view name;
  std::optional<std::string_view> value;
};

OptionText split_option(std::string_view argument) {
  if (argument.starts_with("--")) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string_view::npos) return {argument.substr(2), std::nullopt};
    return {argument.substr(2, equals - 2), argument.substr(equals + 1)};
  }
  if (argument.size() == 2) return {argument.substr(1), std::nullopt};
  return {argument.substr(1, 1), argument.substr(2)};
}

// "--memory" must not be read as "-memory", nor "--e" as "-e".
bool has_its_dashes(std::string_view argument, std::string_view name) {
  return argument.starts_with("--") == (name.size() > 1);
}

void append_wrapped(std::string& out, std::string_view text, std::size_t indent) {
  constexpr std::size_t kColumns = 80;
  std::size_t column = indent;
  bool line_is_empty = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!line_is_empty && column + 1 + word.size() > kColumns) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (!line_is_empty) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    line_is_empty = false;
  }
  out += '\n';
}

}  // namespace

std::string written_option(std::string_view name) {
  return (name.size() == 1 ? "-" : "--") + std::string(name);
}

ParsedOptions parse_options(std::span<const Option> options, std::span<char* const> arguments) {
  ParsedOptions parsed;
  const auto mistake = [&parsed](Error error) {
    if (!parsed.error) parsed.error = std::move(error);
  };
  const auto give = [&](std::size_t option, std::string_view value) {
    const auto earlier = std::ranges::find(parsed.given, option, &GivenOption::option);
    if (options[option].times == Times::once && earlier != parsed.given.end()) {
      mistake(
          {ErrorCode::usage, fmt::format("{} is given twice, as {} and {}; it takes one value",
                                         written_option(options[option].name), quote(earlier->value), quote(value))});
    }
    parsed.given.push_back({option, value});
  };
  std::size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string_view argument = meant_by(arguments[i]);
    if (argument == "--") {
      parsed.after_dashes = true;
      ++i;
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') break;
    const OptionText text = split_option(argument);
    const auto option = find_option(options, text.name);
    if (!option || !has_its_dashes(argument, text.name)) {
      mistake(unknown_option(options, argument));
      continue;
    }
    const std::string_view wanted = options[*option].argument;
    if (wanted.empty()) {
      if (text.value) {
        mistake({ErrorCode::usage, fmt::format("{} takes no value", written_option(text.name))});
      }
      parsed.given.push_back({*option, {}});
    } else if (text.value) {
      give(*option, *text.value);
    } else if (i + 1 < arguments.size()) {
      give(*option, arguments[++i]);
    } else {
      mistake({ErrorCode::usage, fmt::format("{0} needs a value: {0} {1}", written_option(text.name), wanted)});
    }
  }
  parsed.operands = arguments.subspan(i);
  return parsed;
}

std::vector<char*> options_first(std::span<const Option> options, std::span<char* const> arguments) {
  std::vector<char*> first;
  std::vector<char*> rest;
  std::size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--") break;
    if (argument.size() < 2 || argument[0] != '-') {
      rest.push_back(arguments[i]);
      continue;
    }
    first.push_back(arguments[i]);
    const OptionText text = split_option(meant_by(argument));
    const auto option = find_option(options, text.name);
    const bool has_value = option && !options[*option].argument.empty() && !text.value;
    if (has_value && i + 1 < arguments.size()) first.push_back(arguments[++i]);
  }
  const std::span<char* const> after_dashes = arguments.subspan(i);
  if (!after_dashes.empty()) first.push_back(after_dashes.front());
  first.insert(first.end(), rest.begin(), rest.end());
  if (!after_dashes.empty()) first.insert(first.end(), after_dashes.begin() + 1, after_dashes.end());
  return first;
}

bool is_given(const ParsedOptions& parsed, std::size_t option) {
  return std::ranges::any_of(parsed.given, [&](const GivenOption& given) { return given.option == option; });
}

WordArguments parse_word(std::span<const Option> options, std::span<char* const> arguments) {
  WordArguments read;
  if (!arguments.empty() && arguments[0][0] != '-') {
    read.word = arguments[0];
    arguments = arguments.subspan(1);
  }
  read.ordered = options_first(options, arguments);
  read.parsed = parse_options(options, read.ordered);
  return read;
}

std::string options_help(std::span<const Option> options) {
  constexpr std::size_t kColumn = 28;
  std::string out;
  for (const Option& option : options) {
    std::string line = fmt::format("  {} {}", written_option(option.name), option.argument);
    line.resize(std::max(line.size() + 1, kColumn), ' ');
    out += line;
    if (line.size() > kColumn) out += std::string("\n").append(kColumn, ' ');
    append_wrapped(out, option.what, kColumn);
  }
  return out;
}

}  // namespace belljar
