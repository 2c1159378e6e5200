#include "cli/policy_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "cli/options.h"
#include "cli/run_command.h"
#include "egress/allowlist.h"
#include "egress/url.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr int kRefused = 1;

enum class CheckFlag : std::size_t { url, method, allow, secret, help };

constexpr Option kOptions[] = {
    {"url", "URL", "the http or https URL that the program would ask for"},
    {"method", "METHOD", "the method of the request; without it, GET"},
    {"allow", "HOST[:PORTS]", "a rule on top of those of the files, as of belljar run", Times::any},
    {"secret", "NAME=SRC@HOST:HEADER", "a secret on top of those of the files; its source is not opened", Times::any},
    {"help", "", "show this help"},
};

std::string check_help() {
  return "usage: belljar policy check --url URL [OPTIONS] [FILE...]\n\n"
         "Says whether the policy files let a program reach the URL, and by which rule. Nothing is resolved or\n"
         "connected to: where the name leads is checked when a program connects. Exit status: 0 allowed, 1 "
         "refused.\n\n" +
         options_help(kOptions);
}

struct Question {
  std::string_view url;
  std::string_view method = "GET";
  RunPolicy policy;
};

Result<Question> read_question(const ParsedOptions& parsed) {
  if (parsed.error) return std::unexpected(*parsed.error);
  Question question;
  for (char* const file : parsed.operands) TRY_VOID(apply_policy_file(question.policy, file));
  question.policy.begin_layer();
  for (const GivenOption& given : parsed.given) {
    const auto flag = static_cast<CheckFlag>(given.option);
    if (flag == CheckFlag::url) question.url = given.value;
    if (flag == CheckFlag::method) {
      TRY_VOID(check_http_method(given.value, "--method"));
      question.method = given.value;
    }
    if (flag == CheckFlag::allow) TRY_VOID(question.policy.add_allow_text(given.value, "--allow"));
    if (flag == CheckFlag::secret) TRY_VOID(question.policy.add_secret_text(given.value, "--secret"));
  }
  const SandboxSpec& spec = question.policy.spec();
  TRY_VOID(check_secret_rules(spec.secrets, spec.allow, "secrets"));
  if (question.url.empty()) return fail(ErrorCode::usage, "policy check needs --url URL");
  return question;
}

struct Answer {
  bool is_allowed = false;
  std::string line;
};

Result<Answer> decide(const Question& question) {
  const auto url = egress::parse_url(question.url);
  if (!url) {
    return fail(ErrorCode::bad_value,
                fmt::format("--url: {} is not a plain http or https URL, such as https://example.org/path; an "
                            "international name is written as in DNS (xn--...)",
                            quote(question.url)));
  }
  const egress::Allowlist list(question.policy.spec().allow);
  const egress::RequestLine line{question.method, egress::path_of_target(url->target)};
  const egress::Decision decision = list.decide_request(url->host, url->port, line);
  if (!decision.is_allowed) return Answer{.line = "refused: " + decision.reason};
  Answer answer{true, "allowed by " + egress::describe_rule(list.rules()[decision.rule], decision.rule)};
  for (const SecretRule& secret : question.policy.spec().secrets) {
    const bool goes_out = egress::is_for(secret.requests, url->host, url->port) && (url->is_tls || secret.plain_http) &&
                          egress::allows_request(secret.requests, line);
    if (goes_out) answer.line += fmt::format(", with the secret {} in {}", one_line(secret.name), secret.header);
  }
  return answer;
}

}  // namespace

int policy_check_command(std::span<char* const> arguments) {
  const std::vector<char*> ordered = options_first(kOptions, arguments);
  const ParsedOptions parsed = parse_options(kOptions, ordered);
  for (const GivenOption& given : parsed.given) {
    if (static_cast<CheckFlag>(given.option) != CheckFlag::help) continue;
    return print(check_help());
  }
  const Result<Question> question = read_question(parsed);
  if (!question) return report_refusal(question.error(), {});
  const Result<Answer> answer = decide(*question);
  if (!answer) return report_refusal(answer.error(), {});
  const int printed = print(answer->line + "\n");
  return printed == 0 && !answer->is_allowed ? kRefused : printed;
}

}  // namespace belljar
