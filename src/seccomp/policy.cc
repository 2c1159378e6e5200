#include "seccomp/policy.h"

#include <fmt/format.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "seccomp/constants.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kTextBytesMax = 256 * 1024;
constexpr std::size_t kLineBytesMax = 4096;  // with its continuation lines
constexpr std::size_t kConditionsMax = 8;    // of a row
constexpr std::size_t kValuesMax = 16;       // of a condition
constexpr std::size_t kRowsPerSyscallMax = 16;
constexpr int kNestingMax = 8;  // of brackets and ~ in a value

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// A row with its continuation lines joined.
struct Line {
  std::size_t number;  // of its first line, from 1
  std::string text;
};

// Reads the head of a row (what stands before the colon), token by token. A token is a word or one symbol.
class Reader {
 public:
  Reader(std::string_view head, std::string_view file_name, std::size_t line)
      : rest_(head), file_name_(file_name), line_(line) {
    advance();
  }

  std::string_view token() const { return token_; }  // empty at the end
  bool at_end() const { return token_.empty(); }
  bool at_word() const { return !token_.empty() && is_word_character(token_.front()); }
  // What is left, token included.
  std::string_view remainder() const { return remainder_; }

  void advance() {
    rest_ = trimmed(rest_);
    remainder_ = rest_;
    std::size_t length = 0;
    while (length < rest_.size() && is_word_character(rest_[length])) ++length;
    if (length == 0 && !rest_.empty()) length = rest_.starts_with("==") || rest_.starts_with("!=") ? 2 : 1;
    token_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
  }

  bool take(std::string_view expected) {
    if (token_ != expected) return false;
    advance();
    return true;
  }

  std::unexpected<Error> fail(std::string_view message) const {
    return belljar::fail(ErrorCode::bad_policy, fmt::format("{}:{}: {}", file_name_, line_, message));
  }

  // "expected WHAT, but found TOKEN"
  std::unexpected<Error> fail_expected(std::string_view what) const {
    if (at_end()) return fail(fmt::format("expected {}, but the row ends", what));
    return fail(fmt::format("expected {}, but found '{}'", what, token_));
  }

 private:
  std::string_view rest_;
  std::string_view remainder_;
  std::string_view token_;
  std::string_view file_name_;
  std::size_t line_;
};

Result<std::uint64_t> parse_number(Reader& reader) {
  std::string_view digits = reader.token();
  int base = 10;
  if (digits.starts_with("0x")) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits.starts_with("0")) {
    base = 8;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return reader.fail_expected("a 64-bit number (10, 0x1f or octal 0755)");
  }
  reader.advance();
  return value;
}

Result<std::uint64_t> parse_value(Reader& reader, int nesting);

Result<std::uint64_t> parse_term(Reader& reader, int nesting) {
  if (nesting > kNestingMax) return reader.fail(fmt::format("a value nests at most {} deep", kNestingMax));
  if (reader.take("~")) return ~TRY(parse_term(reader, nesting + 1));
  if (reader.take("(")) {
    const std::uint64_t value = TRY(parse_value(reader, nesting + 1));
    if (!reader.take(")")) return reader.fail_expected("')'");
    return value;
  }
  if (!reader.at_word()) return reader.fail_expected("a number, the name of a constant, '~' or '('");
  if (reader.token().front() >= '0' && reader.token().front() <= '9') return parse_number(reader);
  const auto constant = find_constant(reader.token());
  if (!constant) return reader.fail_expected("a constant that constants.cc lists");
  reader.advance();
  return *constant;
}

Result<std::uint64_t> parse_value(Reader& reader, int nesting) {
  std::uint64_t value = TRY(parse_term(reader, nesting));
  while (reader.take("|")) value |= TRY(parse_term(reader, nesting));
  return value;
}

// A condition whose argument is still a name: what that is depends on the syscall.
struct NamedCondition {
  std::string_view argument;
  std::uint64_t mask;
  Membership membership;
  std::vector<std::uint64_t> values;
};

Result<std::vector<std::uint64_t>> parse_set(Reader& reader) {
  std::vector<std::uint64_t> values;
  if (!reader.take("{")) return reader.fail_expected("'{'");
  do {
    if (values.size() == kValuesMax) return reader.fail(fmt::format("a set has at most {} values", kValuesMax));
    values.push_back(TRY(parse_value(reader, 0)));
  } while (reader.take(","));
  if (!reader.take("}")) return reader.fail_expected("',' or '}'");
  return values;
}

// ARGUMENT [& MASK] == VALUE | != VALUE | in {...} | not in {...}
Result<NamedCondition> parse_condition(Reader& reader) {
  if (!reader.at_word()) return reader.fail_expected("the name of an argument");
  NamedCondition condition{reader.token(), ~std::uint64_t{0}, Membership::in, {}};
  reader.advance();
  if (reader.take("&")) condition.mask = TRY(parse_term(reader, 0));
  if (reader.take("==")) {
    condition.values = {TRY(parse_value(reader, 0))};
  } else if (reader.take("!=")) {
    condition.membership = Membership::not_in;
    condition.values = {TRY(parse_value(reader, 0))};
  } else {
    if (reader.take("not")) condition.membership = Membership::not_in;
    if (!reader.take("in"))
      return reader.fail_expected("'==', '!=', 'in' or 'not in' (a mask of several bits takes brackets)");
    condition.values = TRY(parse_set(reader));
  }
  return condition;
}

Result<Condition> resolve(const Reader& reader, const NamedCondition& named, const Syscall& syscall) {
  Condition condition{{}, named.mask, named.membership, named.values};
  if (!find_argument(syscall, named.argument, condition.argument)) {
    return reader.fail(fmt::format(
        "{} has no argument '{}'; its arguments are: {}", syscall.name, named.argument,
        syscall.arguments.empty() ? "none written down (add them to syscalls_x86_64.def)" : syscall.arguments));
  }
  const int width = condition.argument.width_bits;
  if (width < 64) condition.mask &= (std::uint64_t{1} << width) - 1;
  if (condition.mask == 0) {
    return reader.fail(
        fmt::format("the mask leaves nothing of {}'s {}, which has {} bits", syscall.name, named.argument, width));
  }
  for (const std::uint64_t value : condition.values) {
    if ((value & ~condition.mask) == 0) continue;
    return reader.fail(fmt::format("{}'s {} can never be {:#x}: it has {} bits, of which the mask leaves {:#x}",
                                   syscall.name, named.argument, value, width, condition.mask));
  }
  return condition;
}

Result<std::optional<Action>> parse_action(Reader& reader) {
  if (reader.take("allow")) return Action{ActionKind::allow, 0};
  if (reader.take("trap")) return Action{ActionKind::trap, 0};
  if (reader.take("kill")) return Action{ActionKind::kill, 0};
  if (!reader.take("errno")) return std::nullopt;
  const auto error = find_errno(reader.token());
  if (!error) return reader.fail_expected("the name of an errno such as EPERM");
  reader.advance();
  return Action{ActionKind::error, *error};
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file_name) : text_(text), file_name_(file_name) {
    policy_.table = &x86_64_syscalls();
    decided_.resize(policy_.table->syscalls.size());
    row_counts_.resize(policy_.table->syscalls.size());
  }

  Result<Policy> parse();

 private:
  Result<std::vector<Line>> lines() const;
  Result<void> parse_line(const Line& line);
  Result<void> parse_fallback(Reader& reader, std::string_view reason, Fallback& fallback, bool& seen);
  Result<void> parse_rule(Reader& reader, Action action, std::string_view reason);
  Result<std::vector<const Syscall*>> parse_names(Reader& reader);
  std::unexpected<Error> fail(std::size_t line, std::string_view message) const {
    return belljar::fail(ErrorCode::bad_policy, fmt::format("{}:{}: {}", file_name_, line, message));
  }

  std::string_view text_;
  std::string_view file_name_;
  Policy policy_;
  bool default_seen_ = false;
  bool unknown_seen_ = false;
  bool foreign_seen_ = false;
  std::vector<bool> decided_;            // by syscall: an earlier row without conditions
  std::vector<std::size_t> row_counts_;  // by syscall
};

// Splits the text into rows: comments and empty lines go, lines that start with a blank continue the row above.
Result<std::vector<Line>> Parser::lines() const {
  std::vector<Line> result;
  std::string_view rest = text_;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::string_view raw = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), raw.size() + 1));
    const auto bad = std::ranges::find_if(raw, [](char c) { return c < 0x20 || c > 0x7e; });
    if (bad != raw.end()) {
      return fail(number, fmt::format("byte {:#04x} can't stand here; a policy is printable ASCII",
                                      static_cast<unsigned char>(*bad)));
    }
    const std::string_view text = trimmed(raw);
    if (text.empty() || text.starts_with('#')) continue;
    const bool continues = raw.front() == ' ';
    if (continues && result.empty()) return fail(number, "a row starts in the first column");
    if (!continues) result.push_back({number, {}});
    std::string& line = result.back().text;
    if (line.size() + text.size() >= kLineBytesMax)
      return fail(number, fmt::format("a row has at most {} bytes", kLineBytesMax));
    if (continues) line += ' ';
    line += text;
  }
  return result;
}

Result<void> Parser::parse_fallback(Reader& reader, std::string_view reason, Fallback& fallback, bool& seen) {
  if (seen) return reader.fail("this was said before; once is right");
  seen = true;
  const auto action = TRY(parse_action(reader));
  if (!action || action->kind == ActionKind::allow)
    return reader.fail("expected 'errno NAME', 'trap' or 'kill': what no row names is refused");
  if (!reader.at_end()) return reader.fail_expected("':' and a reason");
  fallback = {*action, std::string(reason)};
  return {};
}

Result<std::vector<const Syscall*>> Parser::parse_names(Reader& reader) {
  std::vector<const Syscall*> result;
  do {
    const Syscall* syscall = find_syscall(*policy_.table, reader.token());
    if (syscall == nullptr) return reader.fail_expected("a syscall that syscalls_x86_64.def lists");
    result.push_back(syscall);
    reader.advance();
  } while (reader.take(","));
  return result;
}

Result<void> Parser::parse_rule(Reader& reader, Action action, std::string_view reason) {
  const auto names = TRY(parse_names(reader));
  std::vector<NamedCondition> conditions;
  std::string_view condition_text;
  if (reader.take("if")) {
    condition_text = reader.remainder();
    do {
      if (conditions.size() == kConditionsMax)
        return reader.fail(fmt::format("a row has at most {} conditions", kConditionsMax));
      conditions.push_back(TRY(parse_condition(reader)));
    } while (reader.take("and"));
    if (!reader.at_end()) return reader.fail_expected("'and', or ':' and a reason");
  }
  if (!reader.at_end()) return reader.fail_expected("',', 'if', or ':' and a reason");
  for (const Syscall* syscall : names) {
    const auto index = static_cast<std::size_t>(syscall - policy_.table->syscalls.data());
    if (decided_[index]) {
      return reader.fail(
          fmt::format("an earlier row decides every {}; put this row before it, or drop one", syscall->name));
    }
    if (++row_counts_[index] > kRowsPerSyscallMax) {
      return reader.fail(fmt::format("{} has more than {} rows", syscall->name, kRowsPerSyscallMax));
    }
    PolicyRow row{syscall, action, {}, std::string(condition_text), std::string(reason)};
    for (const NamedCondition& named : conditions) row.conditions.push_back(TRY(resolve(reader, named, *syscall)));
    decided_[index] = conditions.empty();
    policy_.rows.push_back(std::move(row));
  }
  return {};
}

Result<void> Parser::parse_line(const Line& line) {
  const std::string_view text = line.text;
  const std::size_t colon = text.find(':');
  Reader reader(trimmed(text.substr(0, colon)), file_name_, line.number);
  if (reader.take("policy")) {
    if (!policy_.name.empty()) return reader.fail("the policy has a name already");
    if (!reader.at_word() || colon != std::string_view::npos) return reader.fail("expected 'policy NAME'");
    policy_.name = reader.token();
    reader.advance();
    if (!reader.at_end()) return reader.fail_expected("nothing after the name");
    return {};
  }
  const std::string_view reason = colon == std::string_view::npos ? "" : trimmed(text.substr(colon + 1));
  if (reason.empty()) return reader.fail("the row gives no reason; end it with ': why'");
  if (reader.take("default")) return parse_fallback(reader, reason, policy_.other_known, default_seen_);
  if (reader.take("unknown")) return parse_fallback(reader, reason, policy_.other_number, unknown_seen_);
  if (reader.take("foreign")) return parse_fallback(reader, reason, policy_.other_entry, foreign_seen_);
  const auto action = TRY(parse_action(reader));
  if (!action) return reader.fail_expected("allow, errno, trap, kill, policy, default, unknown or foreign");
  return parse_rule(reader, *action, reason);
}

Result<Policy> Parser::parse() {
  if (text_.size() > kTextBytesMax) return fail(1, fmt::format("a policy has at most {} bytes", kTextBytesMax));
  const auto all = TRY(lines());
  for (const Line& line : all) TRY_VOID(parse_line(line));
  const std::size_t last = all.empty() ? 1 : all.back().number;
  if (policy_.name.empty()) return fail(last, "the policy has no name; begin with 'policy NAME'");
  if (!default_seen_)
    return fail(last, "no row says what happens to known syscalls that are not named; add 'default errno EPERM: why'");
  if (!unknown_seen_)
    return fail(last, "no row says what happens to numbers that nobody knows; add 'unknown errno ENOSYS: why'");
  if (!foreign_seen_)
    return fail(last, "no row says what happens to another machine's syscalls; add 'foreign kill: why'");
  return std::move(policy_);
}

}  // namespace

std::uint32_t Action::seccomp_value() const {
  switch (kind) {
    case ActionKind::allow:
      return SECCOMP_RET_ALLOW;
    case ActionKind::error:
      return SECCOMP_RET_ERRNO | error;
    case ActionKind::trap:
      return SECCOMP_RET_TRAP;
    case ActionKind::notify:
      return SECCOMP_RET_USER_NOTIF;
    case ActionKind::kill:
      break;
  }
  return SECCOMP_RET_KILL_PROCESS;
}

std::string Action::text() const {
  switch (kind) {
    case ActionKind::allow:
      return "allow";
    case ActionKind::error:
      return fmt::format("errno {}", errno_name(error));
    case ActionKind::trap:
      return "trap";
    case ActionKind::notify:
      return "notify";
    case ActionKind::kill:
      break;
  }
  return "kill";
}

Result<Policy> parse_policy(std::string_view text, std::string_view file_name) {
  return Parser(text, file_name).parse();
}

std::vector<std::vector<const PolicyRow*>> rows_by_syscall(const Policy& policy) {
  std::vector<std::vector<const PolicyRow*>> result(policy.table->syscalls.size());
  for (const PolicyRow& row : policy.rows) {
    result[static_cast<std::size_t>(row.syscall - policy.table->syscalls.data())].push_back(&row);
  }
  return result;
}

namespace {

bool holds(const Condition& condition, const seccomp_data& call) {
  const std::uint64_t value = call.args[condition.argument.position] & condition.mask;
  const bool found = std::ranges::find(condition.values, value) != condition.values.end();
  return found == (condition.membership == Membership::in);
}

}  // namespace

std::uint32_t evaluate_policy(const Policy& policy, const seccomp_data& call) {
  if (call.arch != policy.table->audit_arch) return policy.other_entry.action.seccomp_value();
  const auto number = static_cast<std::uint32_t>(call.nr);
  const auto known = std::ranges::find(policy.table->syscalls, number, &Syscall::number);
  if (known == policy.table->syscalls.end()) return policy.other_number.action.seccomp_value();
  for (const PolicyRow& row : policy.rows) {
    if (row.syscall != &*known) continue;
    if (std::ranges::all_of(row.conditions, [&call](const Condition& condition) { return holds(condition, call); })) {
      return row.action.seccomp_value();
    }
  }
  return policy.other_known.action.seccomp_value();
}

}  // namespace belljar
