// belljar-egress: the way to the network of one sandbox. Started by belljar with the descriptors of launch.h; of no use
// to anyone else.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/fd.h"
#include "egress/confine_self.h"
#include "egress/inspection_sources.h"
#include "egress/launch.h"
#include "egress/secrets.h"
#include "egress/server.h"
#include "egress/tls.h"
#include "spec/errors.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} << 20;
constexpr std::size_t kTrustBytesMax = std::size_t{8} << 20;
constexpr int kFailed = 1;

// Empty where there is none, as for any resolver.
std::string host_text(const char* path) {
  return read_file_at(AT_FDCWD, path, kFileBytesMax).value_or("");
}

struct Inspecting {
  Secrets secrets;
  std::unique_ptr<Tls> tls;
};

// Reads the secrets, makes the authority, and says so: the sandbox waits for both.
Result<Inspecting> prepare_inspection(const EgressConfig& config) {
  Inspecting inspecting;
  if (!needs_inspection(config.secrets, config.rules)) return inspecting;
  // No other process of this user may look from here on, the values are in this memory.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return fail(ErrorCode::internal, "dumpable");
  const InspectionSources sources = TRY(take_over(kControlFd, config.secrets.size()));
  EgressReady ready;
  for (std::size_t i = 0; i < config.secrets.size(); ++i) {
    std::string value = TRY(read_secret_value(sources.secrets[i].get(), config.secrets[i].name));
    ready.secret_bytes.push_back(value.size());
    inspecting.secrets.add(config.secrets[i], std::move(value));
  }
  inspecting.tls = TRY(Tls::create(read_all(sources.trusted.get(), kTrustBytesMax).value_or("")));
  ready.authority_pem = inspecting.tls->authority_pem();
  if (write_all(kControlFd, ready_to_json(ready) + "\n")) return inspecting;
  return fail(ErrorCode::internal, "nobody listens");
}

Result<EgressReport> serve() {
  const auto text = read_all(kConfigFd, kFileBytesMax);
  if (!text) return fail(ErrorCode::internal, "no configuration came");
  EgressConfig config = TRY(config_from_json(*text));
  ::close(kConfigFd);
  ResolverFiles files = read_resolver_files(host_text("/etc/resolv.conf"), host_text("/etc/hosts"));
  Poller poller = TRY(Poller::create());
  Inspecting inspecting = TRY(prepare_inspection(config));
  TRY_VOID(confine_self(config));
  Server server(std::move(config), std::move(files), std::move(poller), std::move(inspecting.secrets),
                std::move(inspecting.tls));
  if (server.run(kLinkFd, kControlFd)) return server.report();
  return fail(ErrorCode::internal, "the sockets inside were not what they had to be");
}

// Serves, and says how that ended. Returns the exit status.
int serve_and_report() {
  const Result<EgressReport> report = serve();
  const auto describe = [](const Error& error) {
    return error.code == ErrorCode::bad_value ? refusal_to_json(error.message) : failure_to_json(error.message);
  };
  const std::string said = report ? report_to_json(*report) : describe(report.error());
  return write_all(kControlFd, said) && report ? 0 : kFailed;
}

}  // namespace
}  // namespace belljar::egress

int main() {
  ::signal(SIGPIPE, SIG_IGN);
  return belljar::egress::serve_and_report();
}
