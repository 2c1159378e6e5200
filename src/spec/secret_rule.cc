#include "spec/secret_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <span>

#include "base/utf8.h"
#include "spec/checks.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kHeaderBytesMax = 128;
constexpr std::size_t kFormatBytesMax = 1024;
constexpr std::string_view kHole = "{}";
constexpr std::string_view kPlainScheme = "http://";

// Headers that say where a request goes, where it ends, or concern one hop only.
constexpr std::string_view kFramingHeaders[] = {
    "host",    "content-length", "transfer-encoding", "connection",          "keep-alive",       "te", "trailer",
    "upgrade", "expect",         "http2-settings",    "proxy-authorization", "proxy-connection",
};

struct SourceRow {
  SecretSource source;
  std::string_view name;
};
constexpr SourceRow kSources[] = {{SecretSource::file, "file"}, {SecretSource::fd, "fd"}, {SecretSource::env, "env"}};

std::unexpected<Error> bad(std::string_view where, std::string_view what) {
  return fail(ErrorCode::bad_value, fmt::format("{}: {}", where, what));
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool is_header_name(std::string_view text) {
  return !text.empty() && text.size() <= kHeaderBytesMax && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
  });
}

std::optional<int> descriptor(std::string_view text) {
  int fd = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (error != std::errc{} || end != text.data() + text.size() || fd < 0) return std::nullopt;
  return fd;
}

// "8443:" or "80,443:" before the header.
std::size_t ports_length(std::string_view text) {
  const std::size_t end = text.find(':');
  const std::string_view ports = text.substr(0, end);
  const bool is_ports = end != std::string_view::npos && !ports.empty() &&
                        ports.find_first_not_of("0123456789,") == std::string_view::npos;
  return is_ports ? end + 1 : 0;
}

// Whether some path fits both patterns: equal, or what stands before a * at the end.
bool share_path(std::string_view one, std::string_view other) {
  if (!other.ends_with('*')) std::swap(one, other);
  if (!other.ends_with('*')) return one == other;
  other.remove_suffix(1);
  const bool is_open = one.ends_with('*');
  if (is_open) one.remove_suffix(1);
  return one.starts_with(other) || (is_open && other.starts_with(one));
}

// Variables that the sandbox sets for its programs, or by which programs find code to load or whom to trust: a
// placeholder in one of them breaks programs in ways that are hard to guess. With * at the end: all that begin so.
constexpr std::string_view kTakenNames[] = {
    "PATH",
    "HOME",
    "LANG",
    "TZ",
    "TERM",
    "VIRTUAL_ENV",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "LD_*",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "LOCPATH",
    "LC_*",
    "LANGUAGE",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PYTHON*",
    "PERL5*",
    "PERLLIB",
    "RUBYLIB",
    "RUBYOPT",
    "NODE_OPTIONS",
    "NODE_PATH",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "OPENSSL_ENGINES",
};

bool is_taken_name(std::string_view name) {
  return std::ranges::any_of(kTakenNames, [&](std::string_view taken) {
    return taken.ends_with('*') ? name.starts_with(taken.substr(0, taken.size() - 1)) : name == taken;
  });
}

template <typename Value, typename Share>
bool share_any(const std::vector<Value>& one, const std::vector<Value>& other, Share share) {
  return std::ranges::any_of(one, [&](const Value& value) {
    return std::ranges::any_of(other, [&](const Value& another) { return share(value, another); });
  });
}

// Whether one request could be meant by both.
bool share_request(const EgressRule& one, const EgressRule& other) {
  const bool share_method =
      one.methods.empty() || other.methods.empty() || share_any(one.methods, other.methods, std::equal_to<>());
  const bool share_paths = one.paths.empty() || other.paths.empty() || share_any(one.paths, other.paths, share_path);
  return one.host == other.host && share_any(one.ports, other.ports, std::equal_to<>()) && share_method && share_paths;
}

// A header has one value.
Result<void> check_header_is_free(const SecretRule& secret, std::span<const SecretRule> others,
                                  std::string_view where) {
  const auto taken = std::ranges::find_if(others, [&](const SecretRule& other) {
    return lower(other.header) == lower(secret.header) && share_request(other.requests, secret.requests);
  });
  if (taken == others.end()) return {};
  return bad(where, fmt::format("{} and {} are both for the header {} of requests to {}, which can have one of them; "
                                "leave one out, or keep them apart by methods or paths in a policy file",
                                taken->name, secret.name, secret.header, secret.requests.host.text));
}

// A second reader of a descriptor would find nothing left.
Result<void> check_descriptor_is_free(const SecretRule& secret, std::span<const SecretRule> others,
                                      std::string_view where) {
  if (secret.source != SecretSource::fd) return {};
  const int number = descriptor(secret.from).value_or(-1);
  const auto taken = std::ranges::find_if(others, [&](const SecretRule& other) {
    return other.source == SecretSource::fd && descriptor(other.from) == number;
  });
  if (taken == others.end()) return {};
  return bad(where,
             fmt::format("{} and {} are both from descriptor {}, which can be read once; open another for one of "
                         "them, such as {}<key.txt",
                         taken->name, secret.name, number, number + 1));
}

}  // namespace

std::string_view secret_source_name(SecretSource source) {
  return std::ranges::find(kSources, source, &SourceRow::source)->name;
}

Result<void> parse_secret_source(std::string_view text, std::string_view where, SecretRule* rule) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto* const row = std::ranges::find(kSources, text.substr(0, colon), &SourceRow::name);
  if (row == std::end(kSources) || colon == text.size()) {
    // Not shown: it may be the value itself.
    return bad(where, "the source of the value must be file:PATH, fd:NUMBER or env:NAME, never the value itself");
  }
  rule->source = row->source;
  rule->from = text.substr(colon + 1);
  return {};
}

Result<void> parse_secret_header(std::string_view text, std::string_view where, SecretRule* rule) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return bad(where, "the header is not of the form 'Authorization: Bearer {}', with {} for the value");
  }
  rule->header = text.substr(0, colon);
  text.remove_prefix(colon + 1);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  rule->header_format = text;
  return {};
}

namespace {

// What stands after the source: [http://]HOST[:PORTS]:HEADER: FORMAT.
Result<void> parse_secret_requests(std::string_view rest, std::string_view where, SecretRule* rule) {
  rule->plain_http = rest.starts_with(kPlainScheme);
  if (rule->plain_http) rest.remove_prefix(kPlainScheme.size());
  if (rest.starts_with("https://")) return bad(where, "leave https:// out; a host without a scheme is reached by TLS");
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return bad(where, "after the host, write : and the header, such as 'X-Key: {}'");
  const std::size_t ports = ports_length(rest.substr(colon + 1));
  if (ports > 0) {
    rule->requests = TRY(parse_egress_rule(rest.substr(0, colon + ports), where));
  } else {
    rule->requests = TRY(parse_egress_host(rest.substr(0, colon), where));
    if (!rule->plain_http) rule->requests.ports = {kHttpsPort};
  }
  TRY_VOID(parse_secret_header(rest.substr(colon + 1 + ports), where, rule));
  return check_secret_rule(*rule, where);
}

// The host is behind the first @ after which all is as it must be: a path may have one too, and so may the header.
// Where there is no such @, the mistake is told of the first one with a host behind it, or else of the first one.
Result<SecretRule> find_secret_requests(std::string_view text, std::string_view where, const SecretRule& named) {
  std::optional<Error> mistake;
  bool is_after_host = false;
  for (std::size_t at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    SecretRule rule = named;
    TRY_VOID(parse_secret_source(text.substr(0, at), where, &rule));
    const auto parsed = parse_secret_requests(text.substr(at + 1), where, &rule);
    if (parsed) return rule;
    const bool has_host = !rule.requests.host.text.empty();
    if (!mistake || (has_host && !is_after_host)) mistake = parsed.error();
    is_after_host = is_after_host || has_host;
    if (rule.source != SecretSource::file) break;
  }
  if (mistake) return std::unexpected(*mistake);
  return bad(where,
             "it is not of the form NAME=SOURCE@HOST:'HEADER: FORMAT', such as "
             "API_KEY=file:key.txt@api.example.org:'Authorization: Bearer {}'");
}

}  // namespace

Result<SecretRule> parse_secret_rule(std::string_view text, std::string_view where) {
  const std::size_t equals = std::min(text.find('='), text.size());
  SecretRule rule;
  rule.name = text.substr(0, equals);
  text.remove_prefix(std::min(equals + 1, text.size()));
  return find_secret_requests(text, where, rule);
}

Result<void> check_secret_rule(SecretRule& rule, std::string_view where) {
  TRY_VOID(check_environment_name(rule.name, where));
  if (is_taken_name(rule.name)) {
    return bad(where,
               fmt::format("the variable {} is not for a secret: the sandbox sets it, or programs load code by it; "
                           "name another, such as API_KEY",
                           one_line(rule.name)));
  }
  if (rule.source == SecretSource::file) TRY_VOID(check_path(rule.from, where));
  if (rule.source == SecretSource::env) TRY_VOID(check_environment_name(rule.from, where));
  if (rule.source == SecretSource::fd && !descriptor(rule.from)) {
    return bad(where,
               fmt::format("{} is not a descriptor; write a number, such as fd:3 with 3<key.txt after the command",
                           quote(rule.from)));
  }
  TRY_VOID(check_egress_rule(rule.requests, where));
  if (rule.requests.is_wildcard || rule.requests.host.is_literal()) {
    return bad(where, fmt::format("{} has no place here: a secret is for one host, by its name",
                                  quote(format_egress_rule(rule.requests))));
  }
  if (rule.requests.ports == std::vector<std::uint16_t>{kHttpPort} && !rule.plain_http) {
    return bad(where,
               "port 80 has no TLS, and a secret goes without it only where the rule says so: write http:// "
               "before the host, or plain_http = true in a policy file");
  }
  if (!is_header_name(rule.header)) {
    return bad(where, fmt::format("{} is not the name of a header; write it as 'Authorization: Bearer {{}}'",
                                  quote(rule.header)));
  }
  if (std::ranges::find(kFramingHeaders, lower(rule.header)) != std::end(kFramingHeaders)) {
    return bad(where, fmt::format("the header {} is not for secrets; write one such as Authorization or X-Api-Key",
                                  rule.header));
  }
  const std::string& format = rule.header_format;
  const bool is_plain = format.size() <= kFormatBytesMax && !format.ends_with(' ') &&
                        std::ranges::all_of(format, [](char c) { return c >= 0x20 && c < 0x7f; });
  const std::size_t hole = format.find(kHole);
  if (!is_plain || hole == std::string::npos || format.find(kHole, hole + 1) != std::string::npos) {
    return bad(where,
               "the value of the header must have {} in it once, for the secret, as in 'Authorization: Bearer {}'");
  }
  return {};
}

Result<void> check_secret_rules(const std::vector<SecretRule>& secrets, const std::vector<EgressRule>& allow,
                                std::string_view where) {
  if (secrets.size() > kSecretsMax) return bad(where, fmt::format("at most {} secrets", kSecretsMax));
  for (std::size_t i = 0; i < secrets.size(); ++i) {
    const SecretRule& secret = secrets[i];
    TRY_VOID(check_header_is_free(secret, std::span(secrets).first(i), where));
    TRY_VOID(check_descriptor_is_free(secret, std::span(secrets).first(i), where));
    const EgressRule& wanted = secret.requests;
    const auto reaches = [&](const EgressRule& rule) {
      const bool is_named = rule.is_wildcard ? is_below(wanted.host.text, rule.host.text) : rule.host == wanted.host;
      return is_named && std::ranges::any_of(wanted.ports, [&](std::uint16_t port) {
               return std::ranges::binary_search(rule.ports, port);
             });
    };
    if (std::ranges::any_of(allow, reaches)) continue;
    return bad(where, fmt::format("the secret {} is for a host that no rule allows; add --allow {}", secret.name,
                                  format_egress_rule(wanted)));
  }
  return {};
}

std::string secret_placeholder(std::size_t bytes) {
  constexpr std::string_view kWord = "belljar-placeholder-";
  std::string out;
  while (out.size() < bytes) out += kWord.substr(0, bytes - out.size());
  return out;
}

bool needs_inspection(const std::vector<SecretRule>& secrets, const std::vector<EgressRule>& allow) {
  return !secrets.empty() || std::ranges::any_of(allow, &EgressRule::restricts_requests);
}

}  // namespace belljar
