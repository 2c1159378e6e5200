#include "egress/secrets.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/utf8.h"
#include "egress/poller.h"
#include "spec/errors.h"

namespace belljar::egress {
namespace {

constexpr std::uint64_t kPatienceMs = 5000;
constexpr std::string_view kHole = "{}";

std::unexpected<Error> bad(std::string_view name, std::string_view what) {
  return fail(ErrorCode::bad_value, fmt::format("the secret {}: {}", one_line(name), what));
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

Result<void> check_value(std::string_view value, std::string_view name) {
  if (value.size() < kSecretBytesMin) {
    return bad(name, fmt::format("its value has fewer than {} bytes; so short a one would be masked by chance",
                                 kSecretBytesMin));
  }
  const bool is_plain = std::ranges::all_of(value, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (is_plain && value.front() != ' ' && value.back() != ' ') return {};
  return bad(name, "its value must be one line of ASCII without spaces at its ends, to stand in a header");
}

}  // namespace

void wipe(std::string* text) {
  ::explicit_bzero(text->data(), text->size());
  text->clear();
}

Result<std::string> read_secret_value(int fd, std::string_view name) {
  const std::uint64_t until = now_ms() + kPatienceMs;
  std::array<char, kSecretBytesMax + 3> bytes;
  std::size_t size = 0;
  while (size < bytes.size()) {
    const std::uint64_t now = now_ms();
    pollfd waiting{fd, POLLIN, 0};
    const int ready = now < until ? ::poll(&waiting, 1, static_cast<int>(until - now)) : 0;
    if (ready == 0) return bad(name, fmt::format("its source did not end within {} s", kPatienceMs / 1000));
    const ssize_t count = ready > 0 ? ::read(fd, bytes.data() + size, bytes.size() - size) : -1;
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
      return bad(name, fmt::format("its source can't be read: {}", errno_text(errno)));
    }
    if (count == 0) break;
    size += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  std::string_view text(bytes.data(), size);
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  std::string value(text.substr(0, kSecretBytesMax));
  const bool is_long = text.size() > kSecretBytesMax;
  ::explicit_bzero(bytes.data(), bytes.size());
  if (is_long) return bad(name, fmt::format("its value has more than {} bytes", kSecretBytesMax));
  TRY_VOID(check_value(value, name));
  return value;
}

Secrets::~Secrets() {
  for (std::string& value : values_) wipe(&value);
}

void Secrets::add(SecretRule rule, std::string value) {
  rules_.push_back(std::move(rule));
  values_.push_back(std::move(value));
}

bool Secrets::are_for(const Host& host, unsigned port, Transport transport) const {
  return std::ranges::any_of(rules_, [&](const SecretRule& rule) {
    return is_for(rule.requests, host, port) && (transport == Transport::tls || rule.plain_http);
  });
}

Secrets::Headers Secrets::headers_of(const Host& host, unsigned port, Transport transport,
                                     const RequestLine& request) const {
  Headers headers;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const SecretRule& rule = rules_[i];
    if (!is_for(rule.requests, host, port) || (transport == Transport::plain && !rule.plain_http)) continue;
    if (!allows_request(rule.requests, request)) continue;
    Header header{lower(rule.header), rule.header_format};
    if (std::ranges::find(headers, header.name, &Header::name) != headers.end()) continue;
    header.value.reserve(header.value.size() + values_[i].size());
    header.value.replace(header.value.find(kHole), kHole.size(), values_[i]);
    headers.push_back(std::move(header));
  }
  return headers;
}

const SecretRule* Secrets::only_by_tls(const Host& host, std::span<const HttpHeader> headers) const {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].requests.host != host || rules_[i].plain_http) continue;
    const std::string placeholder = secret_placeholder(values_[i].size());
    const std::string name = lower(rules_[i].header);
    const bool is_there = std::ranges::any_of(headers, [&](const HttpHeader& header) {
      return equal_without_case(header.name, name) && header.value.find(placeholder) != std::string_view::npos;
    });
    if (is_there) return &rules_[i];
  }
  return nullptr;
}

}  // namespace belljar::egress
