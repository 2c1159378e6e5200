#include "tiers/container/refusals.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace belljar::container {
namespace {

constexpr std::uint64_t kAnsweredAtOnce = 10'000;
constexpr unsigned kPauseUs = 1000;

bool is_hung_up(int fd) {
  pollfd looked{fd, POLLIN, 0};
  return ::poll(&looked, 1, 0) > 0 && (looked.revents & POLLHUP) != 0;
}

}  // namespace

void Refusals::answer() {
  seccomp_notif asked{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
    // ENOENT: who asked was killed meanwhile, or all are gone that could ask.
    if ((errno != ENOENT && errno != EINTR) || is_hung_up(listener_.get())) listener_.reset();
    return;
  }
  const SyscallRule* const rule = refusing_rule(container_profile(), asked.data);
  seccomp_notif_resp reply{};
  reply.id = asked.id;
  reply.error = rule != nullptr ? -rule->error : -EPERM;
  (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &reply);
  if (++answered_ > kAnsweredAtOnce) ::usleep(kPauseUs);
  if (rule == nullptr) return;
  const auto known = std::ranges::find(counts_, rule, &Count::rule);
  if (known == counts_.end()) {
    counts_.push_back({rule, 1});
  } else {
    ++known->calls;
  }
}

std::vector<Denial> Refusals::denials() const {
  std::vector<Count> counts = counts_;
  std::ranges::stable_sort(counts, std::ranges::greater(), &Count::calls);
  std::vector<Denial> denials;
  for (const Count& count : counts) {
    denials.push_back({"syscall", std::string(count.rule->syscall), std::string(count.rule->reason),
                       "no flag allows it in this tier", count.calls});
  }
  return denials;
}

}  // namespace belljar::container
