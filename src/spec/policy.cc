#include "spec/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.h"
#include "spec/checks.h"
#include "spec/errors.h"
#include "spec/names.h"

namespace belljar {
namespace {

std::unexpected<Error> bad(std::string_view where, std::string_view what) {
  return fail(ErrorCode::bad_value, fmt::format("{}: {}", where, what));
}

constexpr PolicyKey kKeys[] = {
    {"tier", PolicyForm::text, "what stands between the program and the host", &RunPolicy::set_tier},
    {"image", PolicyForm::text,
     "name or path of the image that the program sees as its system; without it, the host's /usr",
     &RunPolicy::set_image},
    {"workdir", PolicyForm::text, "working folder inside; without it, the workspace, the image's or HOME",
     &RunPolicy::set_workdir},
    {"venv", PolicyForm::text, "virtual environment or interpreter folder of the host, seen read-only at the same path",
     &RunPolicy::set_venv},
    {"hide", PolicyForm::list, "absolute paths of the image that are shown empty", &RunPolicy::add_hide},
    {"require", PolicyForm::list, "walls and limits that must hold in full, else nothing runs; all means each of them",
     &RunPolicy::add_require},
    {"accept_weaker", PolicyForm::list,
     "limits that are named and may still be held less than in full, where the host can't",
     &RunPolicy::add_accept_weaker},
    {"on_output_limit", PolicyForm::text, "past the output limit: truncate (drop the rest) or kill (end the run)",
     &RunPolicy::set_on_output_limit},
    {"stdin", PolicyForm::text, "what the program reads: inherit (the caller's) or none", &RunPolicy::set_stdin},
    {"workspace", PolicyForm::text,
     "folder of the host that the program may change in a view of its own, at /workspace; what it changes is kept "
     "apart",
     &RunPolicy::set_workspace},
    {"collect", PolicyForm::list,
     "files to fetch at the end, each as \"SRC:DST\": from the writable space inside to a folder of the host",
     &RunPolicy::add_collect_text},
    {"collect_existing", PolicyForm::text, "files that are in the folder already: keep them, or replace them",
     &RunPolicy::set_collect_existing},
    {"pass_environment", PolicyForm::list, "names of variables whose values are the caller's (the flag is -e NAME)",
     &RunPolicy::add_pass_environment},
    {"allow", PolicyForm::table,
     "what the program can reach on a network: texts as of --allow, or tables with host, ports, methods, paths and "
     "allow_private; without any, nothing",
     nullptr},
    {"secrets", PolicyForm::table,
     "values that are put into requests outside, where the program has placeholders: tables with name, source, host, "
     "header, ports, methods, paths and plain_http",
     nullptr},
    {"limits", PolicyForm::table, "resource limits by name", nullptr},
    {"environment", PolicyForm::table, "variables and their values", nullptr},
    {"mounts", PolicyForm::table, "files and folders of the host", nullptr},
};

constexpr PolicyFlag kFlags[] = {
    {"e", "NAME[=VALUE]", "", "environment", "set a variable; without a value, take the caller's",
     &RunPolicy::add_environment_text},
    {"mount", "SRC:DST[:ro|rw]", "", "mounts", "show a file or folder of the host inside; ro unless rw is written",
     &RunPolicy::add_mount_text},
    {"venv", "PATH", "", "venv", "virtual environment or interpreter folder, seen read-only at the same path",
     &RunPolicy::set_venv},
    {"image", "NAME|PATH", "", "image", "run on an image in place of the host's /usr (see belljar image)",
     &RunPolicy::set_image},
    {"workdir", "PATH", "", "workdir", "working folder inside; without it, the workspace or HOME",
     &RunPolicy::set_workdir},
    {"workspace", "DIR", "", "workspace",
     "let it change a folder in a view of its own, /workspace; belljar changes then shows and applies what it changed",
     &RunPolicy::set_workspace},
    {"allow", "HOST[:PORTS]", "", "allow",
     "let the program reach this host (example.org, '*.example.org', 203.0.113.7:8443); ports 80 and 443 unless named",
     &RunPolicy::add_allow_text},
    {"secret", "NAME=SRC@HOST:HEADER", "", "secrets",
     "put a secret into requests outside: API_KEY=file:key.txt@api.example.org:'Authorization: Bearer {}'",
     &RunPolicy::add_secret_text},
    {"collect", "SRC:DST", "", "collect",
     "at the end, save files from inside (/out or '/tmp/*.png') to a folder of the host; /out is made for it",
     &RunPolicy::add_collect_text},
    {"collect-overwrite", "", "replace", "collect_existing", "let collected files replace files of the folder",
     &RunPolicy::set_collect_existing},
    {"hide", "PATH", "", "hide", "show this path of the image empty", &RunPolicy::add_hide},
    {"require", "NAME", "", "require", "refuse to run unless this wall or limit (or all) holds in full",
     &RunPolicy::add_require},
    {"accept-weaker", "NAME", "", "accept_weaker", "run also where this host can't hold the named limit in full",
     &RunPolicy::add_accept_weaker},
    {"on-output-limit", "truncate|kill", "", "on_output_limit", "past the output limit, drop the rest or end the run",
     &RunPolicy::set_on_output_limit},
    {"no-stdin", "", "none", "stdin", "give the program an empty standard input", &RunPolicy::set_stdin},
    {"isolation", "TIER", "", "tier",
     "what stands between the program and the host: container, kernel, wasm, or auto with --trust",
     &RunPolicy::set_tier},
};

constexpr std::string_view kNetworkNames[] = {"network", "net", "egress", "domains",
                                              "hosts",   "dns", "proxy",  "publish"};

std::string quoted_words(std::string_view first, std::string_view second) {
  return fmt::format("write {} or {}", first, second);
}

}  // namespace

std::span<const PolicyKey> policy_keys() {
  return kKeys;
}

std::span<const PolicyFlag> policy_flags() {
  return kFlags;
}

std::string_view network_refusal(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  if (std::find(std::begin(kNetworkNames), std::end(kNetworkNames), name) == std::end(kNetworkNames)) return {};
  return "there is no such network rule; what a program can reach is named by allow: --allow HOST, or allow = "
         "[\"HOST\"] "
         "in a policy file";
}

void RunPolicy::begin_layer() {
  earlier_mounts_ = spec_.mounts.size();
  earlier_secrets_ = spec_.secrets.size();
}

Result<void> RunPolicy::set_limit(const LimitRow& row, std::string_view text, std::string_view where) {
  spec_.limits.*row.field = {TRY(parse_limit(row, text, where)), LimitSource::named};
  return {};
}

Result<void> RunPolicy::set_tier(std::string_view name, std::string_view where) {
  TRY_VOID(check_tier(name, where));
  spec_.tier = name;
  return {};
}

Result<void> RunPolicy::set_image(std::string_view reference, std::string_view where) {
  TRY_VOID(check_image_reference(reference, where));
  spec_.image = reference;
  return {};
}

Result<void> RunPolicy::set_workdir(std::string_view path, std::string_view where) {
  spec_.workdir = TRY(normal_inside_path(path, where));
  return {};
}

Result<void> RunPolicy::set_venv(std::string_view path, std::string_view where) {
  TRY_VOID(check_path(path, where));
  spec_.venv = path;
  return {};
}

Result<void> RunPolicy::set_workspace(std::string_view path, std::string_view where) {
  TRY_VOID(check_path(path, where));
  spec_.workspace = path;
  return {};
}

Result<void> RunPolicy::set_stdin(std::string_view word, std::string_view where) {
  if (word == "inherit") {
    spec_.stdin_source = StdinSource::inherit;
  } else if (word == "none") {
    spec_.stdin_source = StdinSource::none;
  } else {
    return bad(where, fmt::format("{} is not known; {}", quote(word), quoted_words("inherit", "none")));
  }
  return {};
}

Result<void> RunPolicy::set_on_output_limit(std::string_view word, std::string_view where) {
  if (word == "truncate") {
    spec_.output_policy = OutputPolicy::truncate;
  } else if (word == "kill") {
    spec_.output_policy = OutputPolicy::kill;
  } else {
    return bad(where, fmt::format("{} is not known; {}", quote(word), quoted_words("truncate", "kill")));
  }
  return {};
}

Result<void> RunPolicy::add_hide(std::string_view path, std::string_view where) {
  std::string normal = TRY(checked_hidden_path(path, where));
  auto& hidden = spec_.hidden_paths;
  if (std::find(hidden.begin(), hidden.end(), normal) == hidden.end()) hidden.push_back(std::move(normal));
  return {};
}

Result<void> RunPolicy::add_require(std::string_view name, std::string_view where) {
  auto& required = spec_.required;
  TRY_VOID(check_required(name, where));
  if (std::find(required.begin(), required.end(), name) == required.end()) required.emplace_back(name);
  return {};
}

Result<void> RunPolicy::add_accept_weaker(std::string_view name, std::string_view where) {
  TRY_VOID(check_limit_name(name, where));
  auto& accepted = spec_.weaker_accepted;
  if (std::find(accepted.begin(), accepted.end(), name) == accepted.end()) accepted.emplace_back(name);
  return {};
}

Result<void> RunPolicy::add_environment(EnvironmentRequest request) {
  TRY_VOID(check_environment_variable({request.name, request.value.value_or("")}, request.where));
  std::erase_if(environment_, [&](const EnvironmentRequest& earlier) { return earlier.name == request.name; });
  environment_.push_back(std::move(request));
  return {};
}

Result<void> RunPolicy::add_environment_text(std::string_view text, std::string_view where) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return add_pass_environment(text, where);
  return add_environment(
      {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)), std::string(where)});
}

Result<void> RunPolicy::add_pass_environment(std::string_view name, std::string_view where) {
  return add_environment({std::string(name), std::nullopt, std::string(where)});
}

Result<void> RunPolicy::add_mount(MountSpec mount, std::string_view where) {
  MountSpec checked = TRY(checked_mount(std::move(mount), where));
  auto& mounts = spec_.mounts;
  const auto same = std::find_if(mounts.begin(), mounts.end(),
                                 [&](const MountSpec& earlier) { return earlier.target == checked.target; });
  if (same != mounts.end()) {
    if (static_cast<std::size_t>(same - mounts.begin()) >= earlier_mounts_) {
      return bad(where, fmt::format("two mounts at {}", quote(checked.target)));
    }
    mounts.erase(same);
    --earlier_mounts_;
  }
  mounts.push_back(std::move(checked));
  return {};
}

Result<void> RunPolicy::add_mount_text(std::string_view text, std::string_view where) {
  std::string_view rest = text;
  MountSpec mount;
  if (rest.ends_with(":ro")) {
    rest.remove_suffix(3);
  } else if (rest.ends_with(":rw")) {
    rest.remove_suffix(3);
    mount.access = MountAccess::read_write;
  }
  // The source may hold colons; a target with one can only be written in a policy file.
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || rest.substr(colon + 1).substr(0, 1) != "/") {
    return bad(where,
               fmt::format("{} is not a mount; write SRC:DST, SRC:DST:ro or SRC:DST:rw with an absolute DST, such as "
                           "./data:/data",
                           quote(text)));
  }
  mount.source = rest.substr(0, colon);
  mount.target = rest.substr(colon + 1);
  return add_mount(std::move(mount), where);
}

Result<void> RunPolicy::set_collect_existing(std::string_view word, std::string_view where) {
  if (word == "keep") {
    spec_.collect_existing = ExistingFiles::keep;
  } else if (word == "replace") {
    spec_.collect_existing = ExistingFiles::replace;
  } else {
    return bad(where, fmt::format("{} is not known; {}", quote(word), quoted_words("keep", "replace")));
  }
  return {};
}

Result<void> RunPolicy::add_collect_text(std::string_view text, std::string_view where) {
  // The folder on the host may hold colons; in SRC, ? stands for one.
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) {
    const bool has_source = colon != 0 && !text.empty();
    const char* const missing = has_source ? "no folder for the files that it collects" : "no files to collect";
    return bad(where, fmt::format("{} names {}; write SRC:DST, such as /out:./results", quote(text), missing));
  }
  CollectSpec collect{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
  collect = TRY(checked_collect(std::move(collect), where));
  if (std::find(spec_.collect.begin(), spec_.collect.end(), collect) == spec_.collect.end()) {
    spec_.collect.push_back(std::move(collect));
  }
  return {};
}

Result<void> RunPolicy::add_allow(EgressRule rule, std::string_view where) {
  TRY_VOID(check_egress_rule(rule, where));
  if (std::ranges::find(spec_.allow, rule) == spec_.allow.end()) spec_.allow.push_back(std::move(rule));
  return check_egress_rules(spec_.allow, where);
}

Result<void> RunPolicy::add_allow_text(std::string_view text, std::string_view where) {
  EgressRule rule = TRY(parse_egress_rule(text, where));
  return add_allow(std::move(rule), where);
}

Result<void> RunPolicy::add_secret(SecretRule rule, std::string_view where) {
  TRY_VOID(check_secret_rule(rule, where));
  auto& secrets = spec_.secrets;
  const auto same = std::ranges::find(secrets, rule.name, &SecretRule::name);
  if (same != secrets.end()) {
    if (static_cast<std::size_t>(same - secrets.begin()) >= earlier_secrets_) {
      return bad(where, fmt::format("two secrets with the name {}", one_line(rule.name)));
    }
    secrets.erase(same);
    --earlier_secrets_;
  }
  secrets.push_back(std::move(rule));
  return {};
}

Result<void> RunPolicy::add_secret_text(std::string_view text, std::string_view where) {
  SecretRule rule = TRY(parse_secret_rule(text, where));
  return add_secret(std::move(rule), where);
}

Result<SandboxSpec> RunPolicy::resolve(EnvironmentLookup lookup) const {
  SandboxSpec spec = spec_;
  for (const EnvironmentRequest& request : environment_) {
    EnvironmentVariable variable{request.name, request.value.value_or("")};
    if (!request.value) {
      const char* value = lookup(request.name.c_str());
      if (value == nullptr) {
        return fail(ErrorCode::usage,
                    fmt::format("{}: {} is not set in your environment; give it a value with -e {}=VALUE",
                                request.where, request.name, request.name));
      }
      variable.value = value;
      TRY_VOID(check_environment_variable(variable, request.where));
    }
    spec.environment.push_back(std::move(variable));
  }
  std::sort(spec.environment.begin(), spec.environment.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::sort(spec.mounts.begin(), spec.mounts.end(), [](const auto& a, const auto& b) { return a.target < b.target; });
  return spec;
}

}  // namespace belljar
