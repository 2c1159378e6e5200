#include "egress/inspection_sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/utf8.h"
#include "host/descriptors.h"
#include "spec/errors.h"

namespace belljar::egress {
namespace {

constexpr std::byte kWithTrust{1};
constexpr std::byte kWithoutTrust{0};

std::unexpected<Error> bad(const SecretRule& rule, std::string_view what) {
  return fail(ErrorCode::bad_value, fmt::format("the secret {}: {}", one_line(rule.name), what));
}

Result<Fd> open_file(const SecretRule& rule) {
  auto file = open_at(AT_FDCWD, rule.from.c_str(), O_RDONLY | O_NONBLOCK);
  if (!file) {
    return bad(rule, fmt::format("the file {} can't be read: {}", quote(rule.from), errno_text(file.error().value)));
  }
  struct stat status{};
  if (::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return bad(rule, fmt::format("{} is not a regular file; pass other sources as fd:NUMBER", quote(rule.from)));
  }
  return std::move(*file);
}

Result<Fd> copy_descriptor(const SecretRule& rule) {
  int number = -1;
  std::from_chars(rule.from.data(), rule.from.data() + rule.from.size(), number);
  const int mode = ::fcntl(number, F_GETFL);
  if (mode < 0)
    return bad(rule, fmt::format("descriptor {0} is not open; open it in the shell with {0}<key.txt", number));
  if ((mode & O_ACCMODE) == O_WRONLY) return bad(rule, fmt::format("descriptor {} is not open for reading", number));
  Fd copy(::fcntl(number, F_DUPFD_CLOEXEC, 0));
  if (!copy.is_open()) return bad(rule, fmt::format("descriptor {} can't be copied: {}", number, errno_text(errno)));
  return copy;
}

// A pipe holds more than the longest value.
Result<Fd> pass_variable(const SecretRule& rule, EnvironmentLookup lookup) {
  const char* const value = lookup(rule.from.c_str());
  // Its name is not shown: some write the value there.
  if (value == nullptr) return bad(rule, "what stands after env: is no variable of your environment");
  auto pipe = make_pipe();
  const std::string_view text(value, std::min(std::strlen(value), kSecretBytesMax + 1));
  if (!pipe || !write_all(pipe->write.get(), text)) return bad(rule, "no pipe could be made for it");
  return std::move(pipe->read);
}

Result<Fd> open_source(const SecretRule& rule, EnvironmentLookup lookup) {
  switch (rule.source) {
    case SecretSource::file:
      return open_file(rule);
    case SecretSource::fd:
      return copy_descriptor(rule);
    case SecretSource::env:
      break;
  }
  return pass_variable(rule, lookup);
}

// SSL_CERT_FILE takes the place of what the system has, as with OpenSSL.
Result<Fd> open_trust(EnvironmentLookup lookup) {
  if (const char* const named = lookup("SSL_CERT_FILE"); named != nullptr) {
    auto file = open_at(AT_FDCWD, named, O_RDONLY);
    if (file) return std::move(*file);
    return fail(ErrorCode::bad_value, fmt::format("SSL_CERT_FILE of your environment names {}, which can't be read: {}",
                                                  quote(named), errno_text(file.error().value)));
  }
  for (const std::string_view path : trust_files()) {
    auto file = open_at(AT_FDCWD, std::string(path).c_str(), O_RDONLY);
    if (file) return std::move(*file);
  }
  return Fd();
}

}  // namespace

Result<void> check_secrets_are_unseen(const std::vector<SecretRule>& secrets, const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  std::error_code unknown;  // what can't be found is refused by those who open it
  for (const SecretRule& rule : secrets) {
    if (rule.source != SecretSource::file) continue;
    const fs::path file = fs::canonical(rule.from, unknown);
    for (const std::string& folder : folders) {
      const fs::path shown = fs::canonical(folder, unknown);
      if (file.empty() || shown.empty() || std::ranges::mismatch(shown, file).in1 != shown.end()) continue;
      return bad(rule, fmt::format("the program would see the file {}, for {} is shown inside; keep it elsewhere",
                                   quote(rule.from), quote(folder)));
    }
  }
  return {};
}

std::vector<std::string_view> trust_files() {
  return {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
          "/etc/ssl/cert.pem"};
}

Result<InspectionSources> open_inspection_sources(const std::vector<SecretRule>& secrets, EnvironmentLookup lookup) {
  InspectionSources sources{.is_needed = true, .trusted = TRY(open_trust(lookup))};
  const bool needs_trust = std::ranges::any_of(secrets, [](const SecretRule& rule) { return !rule.plain_http; });
  if (needs_trust && !sources.trusted.is_open()) {
    return fail(ErrorCode::host_unsupported,
                "a secret goes to servers that can be trusted only, and this host has no list of those who vouch for "
                "them; install the package ca-certificates, or set SSL_CERT_FILE");
  }
  for (const SecretRule& rule : secrets) sources.secrets.push_back(TRY(open_source(rule, lookup)));
  return sources;
}

Result<void> hand_over(int socket, const InspectionSources& sources) {
  std::vector<int> fds;
  if (sources.trusted.is_open()) fds.push_back(sources.trusted.get());
  for (const Fd& secret : sources.secrets) fds.push_back(secret.get());
  const std::byte message[] = {sources.trusted.is_open() ? kWithTrust : kWithoutTrust};
  const long sent = host::send_with_descriptors(socket, message, fds);
  if (sent == 1) return {};
  return fail(ErrorCode::no_resources, fmt::format("descriptors can't be passed to the egress process: {}",
                                                   errno_text(static_cast<int>(-sent))));
}

Result<InspectionSources> take_over(int socket, std::size_t secrets) {
  std::byte message{};
  iovec data{&message, sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * (kSecretsMax + 1))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t count = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  const cmsghdr* const part = count == 1 ? CMSG_FIRSTHDR(&header) : nullptr;
  const std::size_t wanted = secrets + (message == kWithTrust ? 1 : 0);
  const std::size_t sent = part != nullptr ? (part->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
  if (count != 1 || sent != wanted || (header.msg_flags & MSG_CTRUNC) != 0) {
    return fail(ErrorCode::internal, "the descriptors of secrets did not come");
  }
  InspectionSources sources{.is_needed = true};
  for (std::size_t i = 0; i < sent; ++i) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
    const bool is_trust = i == 0 && message == kWithTrust;
    if (is_trust) sources.trusted = Fd(fd);
    if (!is_trust) sources.secrets.emplace_back(fd);
  }
  return sources;
}

}  // namespace belljar::egress
