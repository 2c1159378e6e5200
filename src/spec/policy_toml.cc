// Policy files: the only place that knows the TOML library. It is told not to throw; what it hands back is checked here
// key by key, with the line of each in the error.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>

#include "base/fd.h"
#include "base/utf8.h"
#include "spec/errors.h"
#include "spec/names.h"
#include "spec/policy.h"
#include "spec/toml_guard.h"

namespace belljar {
namespace {

using Line = toml::source_index;

// Where messages point: the file, and the way to the key.
class Place {
 public:
  explicit Place(std::string_view file_name) : file_(one_line(file_name)) {}

  std::string at(Line line, std::string_view key) const {
    return key.empty() ? fmt::format("{}:{}", file_, line) : fmt::format("{}:{}: {}", file_, line, one_line(key));
  }
  const std::string& file() const { return file_; }

 private:
  std::string file_;
};

std::unexpected<Error> bad(std::string_view where, std::string_view what) {
  return fail(ErrorCode::bad_policy, fmt::format("{}: {}", where, what));
}

// Errors of single values become errors of the policy.
Result<void> as_policy_error(Result<void> result) {
  if (!result) result.error().code = ErrorCode::bad_policy;
  return result;
}

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number with a point";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

// `node` is what was found, or what was found in it, which `holder` says.
std::unexpected<Error> wrong_type(std::string_view where, std::string_view wanted, const toml::node& node,
                                  std::string_view holder = "") {
  return bad(where, fmt::format("must be {}, not {}{}", wanted, holder, type_name(node)));
}

Line line_of(const toml::key& key) {
  return key.source().begin.line;
}
Line line_of(const toml::node& node) {
  return node.source().begin.line;
}

struct Entry {
  std::string_view name;
  Line line;
  const toml::node* node;
};

// The entries in the order of the file, so that the first mistake is the one reported.
std::vector<Entry> entries_of(const toml::table& table) {
  std::vector<Entry> entries;
  for (const auto& [key, node] : table) entries.push_back({key.str(), line_of(key), &node});
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.line < b.line; });
  return entries;
}

std::unexpected<Error> unknown_key(const Place& place, const Entry& entry, std::string_view parent,
                                   std::span<const std::string_view> known) {
  const std::string full_name = parent.empty() ? std::string(entry.name) : fmt::format("{}.{}", parent, entry.name);
  return bad(place.at(entry.line, full_name), "there is no such key; " + name_hint(entry.name, known));
}

// A limit is a string as on the command line, or a plain number. Nothing for other types.
std::optional<std::string> limit_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  return std::nullopt;
}

Result<void> apply_limits(RunPolicy& policy, const toml::table& table, const Place& place) {
  for (const Entry& entry : entries_of(table)) {
    const auto rows = limit_rows();
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const LimitRow& each) { return each.name == entry.name; });
    if (row == rows.end()) {
      std::vector<std::string_view> known;
      for (const LimitRow& each : rows) known.push_back(each.name);
      return unknown_key(place, entry, "limits", known);
    }
    const std::string where = place.at(entry.line, fmt::format("limits.{}", entry.name));
    const std::optional<std::string> text = limit_text(*entry.node);
    if (!text) {
      const std::string wanted = fmt::format("a string such as \"{}\" or a number", format_limit(*row, row->preset));
      return wrong_type(where, wanted, *entry.node);
    }
    TRY_VOID(as_policy_error(policy.set_limit(*row, *text, where)));
  }
  return {};
}

Result<void> apply_environment(RunPolicy& policy, const toml::table& table, const Place& place) {
  for (const Entry& entry : entries_of(table)) {
    const std::string where = place.at(entry.line, fmt::format("environment.{}", entry.name));
    const auto* value = entry.node->as_string();
    if (value == nullptr) {
      if (entry.name != "pass" || !entry.node->is_array()) return wrong_type(where, "a string", *entry.node);
      return bad(where, "to pass variables of the caller on, write pass_environment = [\"NAME\"] above all tables");
    }
    TRY_VOID(as_policy_error(policy.add_environment({std::string(entry.name), value->get(), where})));
  }
  return {};
}

Result<MountSpec> read_mount(const toml::table& table, Line line, const Place& place) {
  constexpr std::string_view kKnown[] = {"source", "target", "access"};
  MountSpec mount;
  for (const Entry& entry : entries_of(table)) {
    if (std::find(std::begin(kKnown), std::end(kKnown), entry.name) == std::end(kKnown)) {
      return unknown_key(place, entry, "mounts", kKnown);
    }
    const std::string where = place.at(entry.line, fmt::format("mounts.{}", entry.name));
    const auto* text = entry.node->as_string();
    if (text == nullptr) return wrong_type(where, "a string", *entry.node);
    if (entry.name == "source") {
      mount.source = text->get();
    } else if (entry.name == "target") {
      mount.target = text->get();
    } else if (text->get() == "rw") {
      mount.access = MountAccess::read_write;
    } else if (text->get() != "ro") {
      return bad(where, fmt::format("{} is not known; write \"ro\" or \"rw\"", quote(text->get())));
    }
  }
  for (const std::string_view needed : {"source", "target"}) {
    if (!table.contains(needed)) return bad(place.at(line, "mounts"), fmt::format("this mount has no {}", needed));
  }
  return mount;
}

Result<void> apply_mounts(RunPolicy& policy, const toml::array& array, const Place& place) {
  for (const toml::node& node : array) {
    const auto* table = node.as_table();
    if (table == nullptr) return wrong_type(place.at(line_of(node), "mounts"), "tables: write [[mounts]]", node);
    MountSpec mount = TRY(read_mount(*table, line_of(node), place));
    TRY_VOID(as_policy_error(policy.add_mount(std::move(mount), place.at(line_of(node), "mounts"))));
  }
  return {};
}

Result<std::vector<std::string>> read_texts(const toml::node& node, const std::string& where) {
  const auto* array = node.as_array();
  if (array == nullptr) return wrong_type(where, "an array of strings", node);
  if (array->empty()) return bad(where, "the list is empty; leave it out where everything is meant");
  std::vector<std::string> texts;
  for (const toml::node& each : *array) {
    const auto* text = each.as_string();
    if (text == nullptr) return wrong_type(where, "an array of strings", each, "one with ");
    texts.push_back(text->get());
  }
  return texts;
}

Result<std::vector<std::uint16_t>> read_ports(const toml::node& node, const std::string& where) {
  const auto* array = node.as_array();
  if (array == nullptr) return wrong_type(where, "an array of numbers", node);
  std::vector<std::uint16_t> ports;
  for (const toml::node& each : *array) {
    const auto* port = each.as_integer();
    if (port == nullptr) return wrong_type(where, "an array of numbers", each, "one with ");
    if (port->get() < 1 || port->get() > 65535) {
      return bad(where, fmt::format("{} is not a port; ports go from 1 to 65535", port->get()));
    }
    ports.push_back(static_cast<std::uint16_t>(port->get()));
  }
  return ports;
}

Result<bool> read_flag(const toml::node& node, const std::string& where) {
  const auto* flag = node.as_boolean();
  if (flag == nullptr) return wrong_type(where, "true or false", node);
  return flag->get();
}

Result<EgressRule> read_allow(const toml::table& table, Line line, const Place& place) {
  constexpr std::string_view kKnown[] = {"host", "ports", "methods", "paths", "allow_private"};
  const auto* host = table["host"].as_string();
  if (host == nullptr) return bad(place.at(line, "allow"), "this rule has no host; write host = \"example.org\"");
  auto read = parse_egress_host(host->get(), place.at(line, "allow.host"));
  if (!read) return std::unexpected(Error{ErrorCode::bad_policy, read.error().message});
  EgressRule rule = std::move(*read);
  for (const Entry& entry : entries_of(table)) {
    if (std::ranges::find(kKnown, entry.name) == std::end(kKnown)) return unknown_key(place, entry, "allow", kKnown);
    const std::string where = place.at(entry.line, fmt::format("allow.{}", entry.name));
    if (entry.name == "ports") rule.ports = TRY(read_ports(*entry.node, where));
    if (entry.name == "methods") rule.methods = TRY(read_texts(*entry.node, where));
    if (entry.name == "paths") rule.paths = TRY(read_texts(*entry.node, where));
    if (entry.name == "allow_private") rule.allow_private = TRY(read_flag(*entry.node, where));
  }
  return rule;
}

Result<void> apply_allow(RunPolicy& policy, const toml::node& list, const std::string& list_where, const Place& place) {
  const auto* array = list.as_array();
  if (array == nullptr) return wrong_type(list_where, "an array of hosts and rules", list);
  for (const toml::node& node : *array) {
    const std::string where = place.at(line_of(node), "allow");
    if (const auto* text = node.as_string()) {
      TRY_VOID(as_policy_error(policy.add_allow_text(text->get(), where)));
      continue;
    }
    const auto* table = node.as_table();
    if (table == nullptr) return wrong_type(where, "a host or a table with a host", node);
    EgressRule rule = TRY(read_allow(*table, line_of(node), place));
    TRY_VOID(as_policy_error(policy.add_allow(std::move(rule), where)));
  }
  return {};
}

Result<SecretRule> read_secret(const toml::table& table, Line line, const Place& place) {
  constexpr std::string_view kKnown[] = {"name", "source", "host", "header", "ports", "methods", "paths", "plain_http"};
  SecretRule rule;
  for (const std::string_view needed : {"name", "source", "host", "header"}) {
    const auto* text = table[needed].as_string();
    const std::string where = place.at(line, fmt::format("secrets.{}", needed));
    if (text == nullptr) return bad(where, "a secret must have it, as a string");
    if (needed == "name") rule.name = text->get();
    if (needed == "source") TRY_VOID(as_policy_error(parse_secret_source(text->get(), where, &rule)));
    if (needed == "header") TRY_VOID(as_policy_error(parse_secret_header(text->get(), where, &rule)));
    if (needed != "host") continue;
    auto requests = parse_egress_host(text->get(), where);
    if (!requests) return std::unexpected(Error{ErrorCode::bad_policy, requests.error().message});
    rule.requests = std::move(*requests);
  }
  for (const Entry& entry : entries_of(table)) {
    if (std::ranges::find(kKnown, entry.name) == std::end(kKnown)) return unknown_key(place, entry, "secrets", kKnown);
    const std::string where = place.at(entry.line, fmt::format("secrets.{}", entry.name));
    if (entry.name == "ports") rule.requests.ports = TRY(read_ports(*entry.node, where));
    if (entry.name == "methods") rule.requests.methods = TRY(read_texts(*entry.node, where));
    if (entry.name == "paths") rule.requests.paths = TRY(read_texts(*entry.node, where));
    if (entry.name == "plain_http") rule.plain_http = TRY(read_flag(*entry.node, where));
  }
  if (!rule.plain_http && !table.contains("ports")) rule.requests.ports = {kHttpsPort};
  return rule;
}

Result<void> apply_secrets(RunPolicy& policy, const toml::array& array, const Place& place) {
  for (const toml::node& node : array) {
    const auto* table = node.as_table();
    if (table == nullptr) return wrong_type(place.at(line_of(node), "secrets"), "tables: write [[secrets]]", node);
    SecretRule rule = TRY(read_secret(*table, line_of(node), place));
    TRY_VOID(as_policy_error(policy.add_secret(std::move(rule), place.at(line_of(node), "secrets"))));
  }
  return {};
}

Result<void> apply_table(RunPolicy& policy, const Entry& entry, const Place& place) {
  const std::string where = place.at(entry.line, entry.name);
  if (entry.name == "allow") return apply_allow(policy, *entry.node, where, place);
  if (entry.name == "mounts" || entry.name == "secrets") {
    const auto* array = entry.node->as_array();
    if (array == nullptr) return wrong_type(where, fmt::format("tables: write [[{}]]", entry.name), *entry.node);
    return entry.name == "mounts" ? apply_mounts(policy, *array, place) : apply_secrets(policy, *array, place);
  }
  const auto* table = entry.node->as_table();
  if (table == nullptr) return wrong_type(where, fmt::format("a table: write [{}]", entry.name), *entry.node);
  return entry.name == "limits" ? apply_limits(policy, *table, place) : apply_environment(policy, *table, place);
}

Result<void> apply_key(RunPolicy& policy, const PolicyKey& key, const Entry& entry, const Place& place) {
  const std::string where = place.at(entry.line, key.name);
  if (key.form == PolicyForm::table) return apply_table(policy, entry, place);
  if (key.form == PolicyForm::text) {
    const auto* text = entry.node->as_string();
    if (text == nullptr) return wrong_type(where, "a string", *entry.node);
    return as_policy_error((policy.*key.set)(text->get(), where));
  }
  const auto* array = entry.node->as_array();
  if (array == nullptr) return wrong_type(where, "an array of strings", *entry.node);
  for (const toml::node& node : *array) {
    const std::string element_where = place.at(line_of(node), key.name);
    const auto* text = node.as_string();
    if (text == nullptr) return wrong_type(element_where, "an array of strings", node, "one with ");
    TRY_VOID(as_policy_error((policy.*key.set)(text->get(), element_where)));
  }
  return {};
}

Result<void> apply_root(RunPolicy& policy, const toml::table& root, const Place& place) {
  for (const Entry& entry : entries_of(root)) {
    if (const std::string_view refusal = network_refusal(entry.name); !refusal.empty()) {
      return bad(place.at(entry.line, entry.name), refusal);
    }
    const auto keys = policy_keys();
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&](const PolicyKey& each) { return each.name == entry.name; });
    if (key == keys.end()) {
      std::vector<std::string_view> known;
      for (const PolicyKey& each : keys) known.push_back(each.name);
      return unknown_key(place, entry, "", known);
    }
    TRY_VOID(apply_key(policy, *key, entry, place));
  }
  // A name in both would depend on which of them is read first.
  const auto* passed = root["pass_environment"].as_array();
  const auto* given = root["environment"].as_table();
  if (passed == nullptr || given == nullptr) return {};
  for (const toml::node& name : *passed) {
    const std::string& text = name.as_string()->get();
    if (given->contains(text)) {
      return bad(place.at(line_of(name), "pass_environment"),
                 fmt::format("{} is in [environment] too", one_line(text)));
    }
  }
  return {};
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Step step = decode_utf8(rest);
    if (step.code_point == '"' || step.code_point == '\\') {
      out += '\\';
      out += static_cast<char>(step.code_point);
    } else if (is_active_in_terminal(step.code_point)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04X}", static_cast<unsigned>(step.code_point));
    } else {
      out += rest.substr(0, step.length);
    }
    rest.remove_prefix(step.length);
  }
  return out + '"';
}

std::string toml_list(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out.append(out.size() > 1 ? ", " : "").append(toml_string(item));
  return out.append("]");
}

Result<void> check_writable(const SandboxSpec& spec, const std::vector<EnvironmentRequest>& environment) {
  const auto check = [](std::string_view text, std::string_view what) -> Result<void> {
    if (is_utf8(text)) return {};
    return fail(ErrorCode::bad_value,
                fmt::format("{} {} is not UTF-8 and can't be written as TOML", what, quote(text)));
  };
  TRY_VOID(check(spec.image, "image"));
  TRY_VOID(check(spec.workdir, "workdir"));
  TRY_VOID(check(spec.venv, "venv"));
  TRY_VOID(check(spec.workspace, "workspace"));
  for (const std::string& path : spec.hidden_paths) TRY_VOID(check(path, "hide"));
  for (const CollectSpec& collect : spec.collect) {
    TRY_VOID(check(collect.source, "collected path"));
    TRY_VOID(check(collect.destination, "folder for collected files"));
  }
  for (const SecretRule& secret : spec.secrets) TRY_VOID(check(secret.from, "secret's file"));
  for (const MountSpec& mount : spec.mounts) {
    TRY_VOID(check(mount.source, "mount source"));
    TRY_VOID(check(mount.target, "mount target"));
  }
  for (const EnvironmentRequest& request : environment) {
    // The value is not shown: it may be a secret.
    if (!is_utf8(request.value.value_or(""))) {
      return fail(ErrorCode::bad_value,
                  fmt::format("the value of {} is not UTF-8 and can't be written as TOML", request.name));
    }
  }
  return {};
}

// One rule a line, and the short form wherever it says all.
void put_allow(std::string& out, const std::vector<EgressRule>& rules) {
  if (rules.empty()) return;
  out += "allow = [\n";
  for (const EgressRule& rule : rules) {
    if (!rule.restricts_requests() && !rule.allow_private) {
      out += fmt::format("  {},\n", toml_string(format_egress_rule(rule)));
      continue;
    }
    out += fmt::format("  {{ host = {}, ports = [{}]", toml_string((rule.is_wildcard ? "*." : "") + rule.host.text),
                       fmt::join(rule.ports, ", "));
    if (!rule.methods.empty()) out += ", methods = " + toml_list(rule.methods);
    if (!rule.paths.empty()) out += ", paths = " + toml_list(rule.paths);
    out += rule.allow_private ? ", allow_private = true },\n" : " },\n";
  }
  out += "]\n";
}

void put_top_keys(std::string& out, const RunPolicy& policy) {
  const SandboxSpec& spec = policy.spec();
  const auto put = [&out](std::string_view key, const std::string& value) {
    out += fmt::format("{} = {}\n", key, value);
  };
  put("tier", toml_string(spec.tier));
  if (!spec.image.empty()) put("image", toml_string(spec.image));
  if (!spec.workdir.empty()) put("workdir", toml_string(spec.workdir));
  if (!spec.venv.empty()) put("venv", toml_string(spec.venv));
  if (!spec.hidden_paths.empty()) put("hide", toml_list(spec.hidden_paths));
  if (!spec.workspace.empty()) put("workspace", toml_string(spec.workspace));
  if (!spec.collect.empty()) {
    std::vector<std::string> collected;
    for (const CollectSpec& collect : spec.collect) collected.push_back(collect.source + ":" + collect.destination);
    put("collect", toml_list(collected));
  }
  put_allow(out, spec.allow);
  if (spec.collect_existing == ExistingFiles::replace) put("collect_existing", "\"replace\"");
  if (!spec.required.empty()) put("require", toml_list(spec.required));
  if (!spec.weaker_accepted.empty()) put("accept_weaker", toml_list(spec.weaker_accepted));
  put("on_output_limit", spec.output_policy == OutputPolicy::kill ? "\"kill\"" : "\"truncate\"");
  put("stdin", spec.stdin_source == StdinSource::none ? "\"none\"" : "\"inherit\"");
  std::vector<std::string> passed;
  for (const EnvironmentRequest& request : policy.environment()) {
    if (!request.value) passed.push_back(request.name);
  }
  if (!passed.empty()) put("pass_environment", toml_list(passed));
}

void put_tables(std::string& out, const RunPolicy& policy) {
  const SandboxSpec& spec = policy.spec();
  out += "\n[limits]\n";
  for (const LimitRow& row : limit_rows()) {
    const Limit& limit = spec.limits.*row.field;
    const std::string line = fmt::format("{} = \"{}\"", row.name, format_limit(row, limit.value));
    out += limit.source == LimitSource::named ? line + "\n" : fmt::format("# {}  # the default\n", line);
  }
  bool has_header = false;
  for (const EnvironmentRequest& request : policy.environment()) {
    if (!request.value) continue;
    if (!std::exchange(has_header, true)) out += "\n[environment]\n";
    out += fmt::format("{} = {}\n", toml_string(request.name), toml_string(*request.value));
  }
  for (const SecretRule& secret : spec.secrets) {
    out += fmt::format(
        "\n[[secrets]]\nname = {}\nsource = {}\nhost = {}\nheader = {}\nports = [{}]\n", toml_string(secret.name),
        toml_string(fmt::format("{}:{}", secret_source_name(secret.source), secret.from)),
        toml_string(secret.requests.host.text), toml_string(fmt::format("{}: {}", secret.header, secret.header_format)),
        fmt::join(secret.requests.ports, ", "));
    if (!secret.requests.methods.empty()) out += fmt::format("methods = {}\n", toml_list(secret.requests.methods));
    if (!secret.requests.paths.empty()) out += fmt::format("paths = {}\n", toml_list(secret.requests.paths));
    if (secret.plain_http) out += "plain_http = true\n";
  }
  for (const MountSpec& mount : spec.mounts) {
    out += fmt::format("\n[[mounts]]\nsource = {}\ntarget = {}\naccess = \"{}\"\n", toml_string(mount.source),
                       toml_string(mount.target), mount.access == MountAccess::read_write ? "rw" : "ro");
  }
}

}  // namespace

Result<void> apply_policy_text(RunPolicy& policy, std::string_view text, std::string_view file_name) {
  const Place place(file_name);
  if (text.size() > kPolicyBytesMax) {
    return bad(place.file(), fmt::format("a policy file has at most {} bytes", kPolicyBytesMax));
  }
  if (const auto fault = find_toml_fault(text)) return bad(place.at(fault->line, ""), fault->what);
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return bad(place.at(error.source().begin.line, ""), "this is not TOML: " + one_line(error.description()));
  }
  policy.begin_layer();
  return apply_root(policy, parsed.table(), place);
}

Result<void> apply_policy_file(RunPolicy& policy, const std::string& path) {
  const auto unreadable = [&](Errno error) {
    return bad(one_line(path), fmt::format("the policy file can't be read: {}", errno_text(error.value)));
  };
  // What may never end, or never begin, is no policy. O_NONBLOCK: else a pipe is waited for here already (fifo(7)).
  const auto file = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file) return unreadable(file.error());
  struct stat status{};
  if (::fstat(file->get(), &status) != 0) return unreadable({errno});
  if (S_ISDIR(status.st_mode)) return unreadable({EISDIR});
  if (!S_ISREG(status.st_mode)) {
    return bad(one_line(path), fmt::format("this is {}; a policy must be a regular file",
                                           S_ISFIFO(status.st_mode) ? "a pipe" : "a device"));
  }
  const auto text = read_all(file->get(), kPolicyBytesMax);
  if (!text) {
    if (text.error().value == EFBIG)
      return bad(one_line(path), fmt::format("a policy file has at most {} bytes", kPolicyBytesMax));
    return unreadable(text.error());
  }
  return apply_policy_text(policy, *text, path);
}

Result<std::string> policy_to_toml(const RunPolicy& policy) {
  TRY_VOID(check_writable(policy.spec(), policy.environment()));
  std::string out;
  put_top_keys(out, policy);
  put_tables(out, policy);
  return out;
}

}  // namespace belljar
