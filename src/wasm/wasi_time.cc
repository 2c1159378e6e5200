#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "wasm/wasi_calls.h"
#include "wasm/wasi_results.h"

namespace belljar::wasm::calls {
namespace {

constexpr u32 kSubscriptionsMax = 4096;
constexpr std::uint16_t kIsAbsolute = 1;
constexpr std::uint16_t kIsClosed = 1;

std::expected<clockid_t, WasiErrno> host_clock(u32 clock) {
  switch (clock) {
    case 0:
      return CLOCK_REALTIME;
    case 1:
      return CLOCK_MONOTONIC;
    case 2:
      return CLOCK_PROCESS_CPUTIME_ID;
    case 3:
      return CLOCK_THREAD_CPUTIME_ID;
    default:
      return std::unexpected(WasiErrno::inval);
  }
}

u64 now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return nanoseconds(now);
}

Event answer(const Subscription& asked, WasiErrno error) {
  Event event{};
  event.user_data = asked.user_data;
  event.kind = asked.kind;
  event.error = error;
  return event;
}

// What the subscriptions of one poll wait for.
struct Waiting {
  std::vector<Subscription> subscriptions;
  std::vector<u64> due_ns;  // of a clock, on CLOCK_MONOTONIC; one for each subscription
  std::vector<pollfd> polled;
  std::vector<u32> polled_for;  // the subscription that each is for
  std::vector<Event> at_once;   // answers that need no waiting
  std::optional<u64> first_due_ns;
};

void wait_for_clock(const Subscription& asked, Waiting* waiting) {
  const auto clock = host_clock(asked.clock_or_fd);
  if (!clock) {
    waiting->at_once.push_back(answer(asked, clock.error()));
    return;
  }
  u64 left = asked.timeout_ns;
  if ((asked.flags & kIsAbsolute) != 0) {
    const u64 now = now_ns(*clock);
    left = asked.timeout_ns > now ? asked.timeout_ns - now : 0;
  }
  const u64 now = now_ns(CLOCK_MONOTONIC);
  const u64 due = left > ~u64{0} - now ? ~u64{0} : now + left;
  waiting->due_ns.back() = due;
  waiting->first_due_ns = std::min(waiting->first_due_ns.value_or(due), due);
}

void wait_for_file(Wasi& wasi, const Subscription& asked, Waiting* waiting) {
  const OpenFile* const file = wasi.find(asked.clock_or_fd);
  if (file == nullptr) {
    waiting->at_once.push_back(answer(asked, WasiErrno::badf));
    return;
  }
  const bool is_read = asked.kind == EventKind::fd_read;
  waiting->polled.push_back({file->fd(), static_cast<short>(is_read ? POLLIN : POLLOUT), 0});
  waiting->polled_for.push_back(static_cast<u32>(waiting->subscriptions.size() - 1));
}

WasiErrno plan_waiting(Wasi& wasi, u32 subscriptions, u32 count, Waiting* waiting) {
  if (!wasi.memory().bytes(subscriptions, u64{count} * sizeof(Subscription))) return WasiErrno::fault;
  for (u32 i = 0; i < count; ++i) {
    const auto asked = wasi.memory().load<Subscription>(subscriptions + i * static_cast<u32>(sizeof(Subscription)));
    if (!asked) return WasiErrno::fault;
    waiting->subscriptions.push_back(*asked);
    waiting->due_ns.push_back(~u64{0});
    switch (asked->kind) {
      case EventKind::clock:
        wait_for_clock(*asked, waiting);
        break;
      case EventKind::fd_read:
      case EventKind::fd_write:
        wait_for_file(wasi, *asked, waiting);
        break;
      default:
        return WasiErrno::inval;
    }
  }
  return WasiErrno::success;
}

// Until something is ready or due.
WasiErrno wait(Waiting* waiting) {
  while (true) {
    timespec left{};
    if (waiting->at_once.empty() && waiting->first_due_ns) {
      const u64 now = now_ns(CLOCK_MONOTONIC);
      left = to_timespec(*waiting->first_due_ns > now ? *waiting->first_due_ns - now : 0);
    }
    const bool has_end = !waiting->at_once.empty() || waiting->first_due_ns.has_value();
    const int ready = ::ppoll(waiting->polled.data(), waiting->polled.size(), has_end ? &left : nullptr, nullptr);
    if (ready >= 0) return WasiErrno::success;
    if (errno != EINTR) return wasi_errno(errno);
  }
}

}  // namespace

WasiErrno clock_res_get(Wasi& wasi, u32 clock, u32 out) {
  timespec resolution{};
  if (::clock_getres(WASI_TRY(host_clock(clock)), &resolution) != 0) return wasi_errno(errno);
  return stored(wasi, out, nanoseconds(resolution));
}

WasiErrno clock_time_get(Wasi& wasi, u32 clock, u64, u32 out) {
  timespec now{};
  if (::clock_gettime(WASI_TRY(host_clock(clock)), &now) != 0) return wasi_errno(errno);
  return stored(wasi, out, nanoseconds(now));
}

WasiErrno poll_oneoff(Wasi& wasi, u32 subscriptions, u32 events, u32 count, u32 count_out) {
  if (count == 0 || count > kSubscriptionsMax) return WasiErrno::inval;
  Waiting waiting;
  if (const WasiErrno error = plan_waiting(wasi, subscriptions, count, &waiting); error != WasiErrno::success) {
    return error;
  }
  if (const WasiErrno error = wait(&waiting); error != WasiErrno::success) return error;
  std::vector<Event> answers = std::move(waiting.at_once);
  const u64 now = now_ns(CLOCK_MONOTONIC);
  for (u32 i = 0; i < count; ++i) {
    if (waiting.due_ns[i] <= now) answers.push_back(answer(waiting.subscriptions[i], WasiErrno::success));
  }
  for (std::size_t i = 0; i < waiting.polled.size(); ++i) {
    const short seen = waiting.polled[i].revents;
    if (seen == 0) continue;
    Event event = answer(waiting.subscriptions[waiting.polled_for[i]], WasiErrno::success);
    event.bytes = 1;
    if ((seen & POLLHUP) != 0) event.flags = kIsClosed;
    answers.push_back(event);
  }
  if (!wasi.memory().bytes(events, answers.size() * sizeof(Event))) return WasiErrno::fault;
  for (u32 i = 0; i < answers.size(); ++i) {
    (void)wasi.memory().store(events + i * static_cast<u32>(sizeof(Event)), answers[i]);
  }
  return stored(wasi, count_out, static_cast<u32>(answers.size()));
}

}  // namespace belljar::wasm::calls
