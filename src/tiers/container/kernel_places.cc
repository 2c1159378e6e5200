#include "tiers/container/kernel_places.h"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <memory>

#include "host/own_program.h"
#include "spec/errors.h"
#include "tiers/container/container.h"

namespace belljar::container {
namespace {

constexpr const char* kProgram = "belljar-broker";
constexpr const char* kTarget = "/.belljar/broker";

std::unexpected<Error> unreadable(std::string_view why) {
  return fail(ErrorCode::bad_collect,
              fmt::format("what the program left in its user-space kernel can't be read: {}", why));
}

// As much room as the program had, and what this sandbox needs for itself.
SandboxSpec reader_spec(const SandboxSpec& spec) {
  constexpr std::uint64_t kOwnBytes = 32 * kMiB;
  constexpr std::uint64_t kOwnInodes = 64;
  constexpr std::uint64_t kPatienceMs = 60'000;
  SandboxSpec reader;
  reader.collect = spec.collect;
  reader.stdin_source = StdinSource::none;
  Limits& limits = reader.limits;
  const auto with = [](const char* row, std::uint64_t value, std::uint64_t more) {
    const std::uint64_t most = limit_row(row).most;
    return more < most && value < most - more ? value + more : most;
  };
  limits.tmp_size.value = with("tmp_size", spec.limits.tmp_size.value, kOwnBytes);
  limits.tmp_inodes.value = with("tmp_inodes", spec.limits.tmp_inodes.value, kOwnInodes);
  // What is read counts beside what is written where memory is sampled.
  limits.memory.value = with("memory", spec.limits.memory.value, spec.limits.memory.value + 2 * kOwnBytes);
  limits.timeout.value = kPatienceMs;
  return reader;
}

bool ends_within(const RunningSandbox& sandbox, std::uint64_t patience_ms) {
  pollfd end{sandbox.ended_fd(), POLLIN, 0};
  int count = 0;
  do {
    count = ::poll(&end, 1, static_cast<int>(patience_ms));
  } while (count < 0 && errno == EINTR);
  return count > 0;
}

}  // namespace

Result<std::vector<WritablePlace>> read_kernel_places(const SandboxSpec& spec, std::span<const std::string> own_folders,
                                                      Fd arena) {
  constexpr std::uint64_t kKillPatienceMs = 10'000;
  auto file = host::open_own_program(kProgram);
  if (!file) return unreadable(fmt::format("{} is {}", kProgram, host::own_program_places()));
  const SandboxSpec reader = reader_spec(spec);
  OwnProgram program;
  program.program = kTarget;
  program.arguments = {kProgram, "read-files", std::to_string(reader.limits.tmp_inodes.value), "/tmp"};
  program.arguments.insert(program.arguments.end(), own_folders.begin(), own_folders.end());
  program.files.push_back({std::move(file->opened), std::move(file->path), kTarget});
  program.report = std::move(arena);
  auto started = start_own_program(reader, std::move(program));
  if (!started) return unreadable(started.error().message);
  std::unique_ptr<RunningSandbox> sandbox = std::move(*started);
  if (!ends_within(*sandbox, reader.limits.timeout.value)) sandbox->kill();
  if (!ends_within(*sandbox, kKillPatienceMs)) {
    sandbox.release()->abandon();
    return unreadable("the process that reads it does not end");
  }
  const TierExit exit = sandbox->finish();
  if (exit.error) return unreadable(exit.error->message);
  if (exit.hit_memory_limit) return unreadable("there is not enough memory for a second copy");
  if (exit.exit_code != 0) return unreadable("it is damaged");
  return sandbox->take_writable_places();
}

}  // namespace belljar::container
