#include "spec/host_name.h"

#include <fmt/format.h>
#include <idn2.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "base/utf8.h"

namespace belljar {

// Generated from Debian's publicsuffix: its rules, sorted, each with a line end before and after it.
extern const std::string_view kPublicSuffixRules;

namespace {

constexpr std::size_t kLabelBytesMax = 63;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_label_character(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= kLabelBytesMax && label.front() != '-' && label.back() != '-' &&
         std::ranges::all_of(label, is_label_character);
}

// Where the last label is a number, many parsers take the whole for an IPv4 address (the URL Standard, "ends in a
// number").
bool is_number(std::string_view label) {
  if (std::ranges::all_of(label, is_digit)) return true;
  if (!label.starts_with("0x")) return false;
  label.remove_prefix(2);
  return std::ranges::all_of(label, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool has_rule(std::string_view rule) {
  std::size_t low = 0;
  std::size_t high = kPublicSuffixRules.size() - 1;  // kPublicSuffixRules[low] and [high] are line ends
  while (low < high) {
    const std::size_t middle = kPublicSuffixRules.rfind('\n', low + (high - low) / 2);
    const std::size_t start = std::max(middle, low);
    const std::size_t end = kPublicSuffixRules.find('\n', start + 1);
    const std::string_view line = kPublicSuffixRules.substr(start + 1, end - start - 1);
    if (line == rule) return true;
    if (line < rule) {
      low = end;
    } else {
      high = start;
    }
  }
  return false;
}

std::optional<unsigned> parse_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (port == 0 || port > 65535 || text.front() == '0') return std::nullopt;
  return port;
}

}  // namespace

std::optional<Host> parse_host(std::string_view text) {
  if (text.empty() || text.size() > kHostBytesMax) return std::nullopt;
  if (auto address = parse_ip(text)) return Host{std::string(text), address};
  std::string name(text);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  std::string_view rest = name;
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string_view label = rest.substr(0, dot);
    if (!is_label(label)) return std::nullopt;
    if (dot == std::string_view::npos) {
      if (is_number(label)) return std::nullopt;
      return Host{std::move(name), std::nullopt};
    }
    rest.remove_prefix(dot + 1);
  }
}

std::optional<Authority> parse_authority(std::string_view text) {
  std::string_view host_text = text;
  std::string_view port_text;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    host_text = text.substr(1, end - 1);
    if (host_text.find(':') == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(end + 1);
    has_port = !rest.empty();
    if (has_port && rest.front() != ':') return std::nullopt;
    if (has_port) port_text = rest.substr(1);
  } else if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    host_text = text.substr(0, colon);
    port_text = text.substr(colon + 1);
    has_port = true;
  }
  Authority authority;
  auto host = parse_host(host_text);
  if (!host) return std::nullopt;
  authority.host = std::move(*host);
  if (!has_port) return authority;
  authority.port = parse_port(port_text);
  if (!authority.port) return std::nullopt;
  return authority;
}

std::string format_authority(const Host& host, unsigned port) {
  const bool is_v6 = host.address && host.address->family == IpFamily::v6;
  return is_v6 ? fmt::format("[{}]:{}", host.text, port) : fmt::format("{}:{}", host.text, port);
}

std::optional<std::string> to_ascii_name(std::string_view name) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::ranges::all_of(name, is_ascii)) return std::string(name);
  if (!is_utf8(name) || name.find('\0') != std::string_view::npos) return std::nullopt;
  char* out = nullptr;
  const std::string terminated(name);
  const int result = ::idn2_to_ascii_8z(terminated.c_str(), &out, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
  const std::unique_ptr<char, void (*)(void*)> owner(out, ::idn2_free);
  if (result != IDN2_OK) return std::nullopt;
  return std::string(out);
}

bool is_below(std::string_view name, std::string_view base) {
  return name.size() > base.size() + 1 && name.ends_with(base) && name[name.size() - base.size() - 1] == '.';
}

bool is_public_suffix(std::string_view name) {
  if (has_rule(fmt::format("!{}", name))) return false;
  // With a rule for all that is right below it, the names below it are suffixes, and so it is wider still.
  if (has_rule(name) || has_rule(fmt::format("*.{}", name))) return true;
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return true;  // the list's own default: every top-level domain
  return has_rule(fmt::format("*{}", name.substr(dot)));
}

}  // namespace belljar
