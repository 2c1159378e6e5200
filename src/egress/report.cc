#include "egress/report.h"

#include <algorithm>

#include "base/json.h"
#include "base/utf8.h"
#include "spec/errors.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kConfigBytesMax = std::size_t{4} << 20;
constexpr std::size_t kTextBytesMax = 600;

std::unexpected<Error> malformed(std::string_view what) {
  return fail(ErrorCode::internal, "the egress process and belljar don't understand each other: " + std::string(what));
}

std::uint64_t number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return found->get<std::string>();
}

std::vector<std::string> texts_of(const Json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const Json& each : *found) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

// As it may stand in a record: one line of bounded length, whatever the other process was made to say.
std::string shown_text(const Json& object, const char* key) {
  return one_line(text_of(object, key), kTextBytesMax);
}

Json rule_to_json(const EgressRule& rule) {
  return {{"host", rule.host.text}, {"wildcard", rule.is_wildcard ? 1U : 0U},
          {"ports", rule.ports},    {"methods", rule.methods},
          {"paths", rule.paths},    {"private", rule.allow_private ? 1U : 0U}};
}

Result<EgressRule> rule_from_json(const Json& object) {
  if (!object.is_object()) return malformed("a rule");
  auto host = parse_host(text_of(object, "host"));
  if (!host) return malformed("a rule's host");
  EgressRule rule{.host = std::move(*host)};
  rule.is_wildcard = number_of(object, "wildcard") == 1;
  rule.allow_private = number_of(object, "private") == 1;
  rule.methods = texts_of(object, "methods");
  rule.paths = texts_of(object, "paths");
  rule.ports.clear();
  const auto ports = object.find("ports");
  if (ports == object.end() || !ports->is_array()) return malformed("a rule's ports");
  for (const Json& port : *ports) {
    if (!port.is_number_unsigned() || port.get<std::uint64_t>() > 65535) return malformed("a rule's ports");
    rule.ports.push_back(port.get<std::uint16_t>());
  }
  TRY_VOID(check_egress_rule(rule, "allow"));
  return rule;
}

// Where the value comes from is the supervisor's affair.
Json secret_to_json(const SecretRule& secret) {
  return {{"name", secret.name},
          {"requests", rule_to_json(secret.requests)},
          {"plain_http", secret.plain_http ? 1U : 0U},
          {"header", secret.header},
          {"format", secret.header_format}};
}

Result<SecretRule> secret_from_json(const Json& object) {
  if (!object.is_object() || !object.contains("requests")) return malformed("a secret");
  SecretRule secret;
  secret.name = text_of(object, "name");
  secret.source = SecretSource::fd;
  secret.from = "0";
  secret.requests = TRY(rule_from_json(object["requests"]));
  secret.plain_http = number_of(object, "plain_http") == 1;
  secret.header = text_of(object, "header");
  secret.header_format = text_of(object, "format");
  TRY_VOID(check_secret_rule(secret, "secret"));
  return secret;
}

}  // namespace

std::string config_to_json(const EgressConfig& config) {
  Json rules = Json::array();
  for (const EgressRule& rule : config.rules) rules.push_back(rule_to_json(rule));
  Json secrets = Json::array();
  for (const SecretRule& secret : config.secrets) secrets.push_back(secret_to_json(secret));
  return dump_json({{"rules", std::move(rules)},
                    {"secrets", std::move(secrets)},
                    {"connections", config.limits.connections},
                    {"connections_per_second", config.limits.connections_per_second},
                    {"bytes", config.limits.bytes},
                    {"idle_ms", config.limits.idle_ms},
                    {"time_ms", config.limits.time_ms},
                    {"run_as", config.run_as}});
}

Result<EgressConfig> config_from_json(std::string_view text) {
  const auto json = parse_json(text, {.bytes_max = kConfigBytesMax});
  if (!json || !json->is_object()) return malformed("no configuration");
  EgressConfig config;
  const auto rules = json->find("rules");
  if (rules == json->end() || !rules->is_array()) return malformed("no rules");
  for (const Json& each : *rules) config.rules.push_back(TRY(rule_from_json(each)));
  const auto secrets = json->find("secrets");
  if (secrets == json->end() || !secrets->is_array()) return malformed("no secrets");
  for (const Json& each : *secrets) config.secrets.push_back(TRY(secret_from_json(each)));
  config.limits = {.connections = number_of(*json, "connections"),
                   .connections_per_second = number_of(*json, "connections_per_second"),
                   .bytes = number_of(*json, "bytes"),
                   .idle_ms = number_of(*json, "idle_ms"),
                   .time_ms = number_of(*json, "time_ms")};
  config.run_as = static_cast<unsigned>(number_of(*json, "run_as"));
  return config;
}

std::string ready_to_json(const EgressReady& ready) {
  return dump_json({{"authority", ready.authority_pem}, {"secret_bytes", ready.secret_bytes}});
}

std::string refusal_to_json(std::string_view why) {
  return dump_json({{"refusal", why}});
}

Result<EgressReady> ready_from_json(std::string_view text, std::size_t secrets) {
  const auto json = parse_json(text, {.bytes_max = kReportBytesMax});
  if (!json || !json->is_object()) return malformed("no word of being ready");
  if (json->contains("refusal")) return fail(ErrorCode::bad_value, shown_text(*json, "refusal"));
  if (json->contains("failure")) {
    return fail(ErrorCode::internal, "the egress process failed: " + shown_text(*json, "failure"));
  }
  EgressReady ready{.authority_pem = text_of(*json, "authority")};
  const auto lengths = json->find("secret_bytes");
  const bool has_all = lengths != json->end() && lengths->is_array() && lengths->size() == secrets;
  if (!has_all || ready.authority_pem.empty()) return malformed("no word of being ready");
  for (const Json& length : *lengths) {
    if (!length.is_number_unsigned() || length.get<std::uint64_t>() > kSecretBytesMax) return malformed("a length");
    ready.secret_bytes.push_back(length.get<std::size_t>());
  }
  return ready;
}

std::string report_to_json(const EgressReport& report) {
  Json denials = Json::array();
  for (const Denial& denial : report.denials) {
    denials.push_back(
        {{"target", denial.target}, {"rule", denial.rule}, {"hint", denial.hint}, {"count", denial.count}});
  }
  Json uses = Json::array();
  for (const NetworkUse& use : report.uses) {
    uses.push_back({{"target", use.target},
                    {"rule", use.rule},
                    {"count", use.count},
                    {"sent_bytes", use.sent_bytes},
                    {"received_bytes", use.received_bytes}});
  }
  return dump_json({{"sent_bytes", report.sent_bytes},
                    {"received_bytes", report.received_bytes},
                    {"denials", std::move(denials)},
                    {"uses", std::move(uses)}});
}

std::string failure_to_json(std::string_view why) {
  return dump_json({{"failure", why}});
}

Result<EgressReport> report_from_json(std::string_view text) {
  const auto json = parse_json(text, {.bytes_max = kReportBytesMax});
  if (!json || !json->is_object()) return malformed("no report");
  if (json->contains("failure")) {
    return fail(ErrorCode::internal, "the egress process failed: " + shown_text(*json, "failure"));
  }
  EgressReport report;
  report.sent_bytes = number_of(*json, "sent_bytes");
  report.received_bytes = number_of(*json, "received_bytes");
  const auto for_each = [&](const char* key, auto use) {
    const auto rows = json->find(key);
    if (rows == json->end() || !rows->is_array()) return;
    for (std::size_t i = 0; i < std::min(rows->size(), kReportRowsMax + 1); ++i) {
      if ((*rows)[i].is_object()) use((*rows)[i]);
    }
  };
  for_each("denials", [&](const Json& row) {
    report.denials.push_back({.kind = "network",
                              .target = shown_text(row, "target"),
                              .rule = shown_text(row, "rule"),
                              .hint = shown_text(row, "hint"),
                              .count = number_of(row, "count")});
  });
  for_each("uses", [&](const Json& row) {
    report.uses.push_back({.target = shown_text(row, "target"),
                           .rule = shown_text(row, "rule"),
                           .count = number_of(row, "count"),
                           .sent_bytes = number_of(row, "sent_bytes"),
                           .received_bytes = number_of(row, "received_bytes")});
  });
  return report;
}

}  // namespace belljar::egress
