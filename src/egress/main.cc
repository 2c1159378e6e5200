// belljar-egress: the way to the network of one sandbox. Started by belljar with the descriptors of launch.h; of no use
// to anyone else.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "egress/confine_self.h"
#include "egress/launch.h"
#include "egress/server.h"
#include "spec/errors.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} << 20;
constexpr int kFailed = 1;

// Empty where there is none, as for any resolver.
std::string host_text(const char* path) {
  return read_file_at(AT_FDCWD, path, kFileBytesMax).value_or("");
}

Result<EgressReport> serve() {
  const auto text = read_all(kConfigFd, kFileBytesMax);
  if (!text) return fail(ErrorCode::internal, "no configuration came");
  EgressConfig config = TRY(config_from_json(*text));
  ::close(kConfigFd);
  ResolverFiles files = read_resolver_files(host_text("/etc/resolv.conf"), host_text("/etc/hosts"));
  Poller poller = TRY(Poller::create());
  TRY_VOID(confine_self(config));
  Server server(std::move(config), std::move(files), std::move(poller));
  if (server.run(kLinkFd, kControlFd)) return server.report();
  return fail(ErrorCode::internal, "the sockets inside were not what they had to be");
}

// Serves, and says how that ended. Returns the exit status.
int serve_and_report() {
  const Result<EgressReport> report = serve();
  const std::string said = report ? report_to_json(*report) : failure_to_json(report.error().message);
  return write_all(kControlFd, said) && report ? 0 : kFailed;
}

}  // namespace
}  // namespace belljar::egress

int main() {
  ::signal(SIGPIPE, SIG_IGN);
  return belljar::egress::serve_and_report();
}
