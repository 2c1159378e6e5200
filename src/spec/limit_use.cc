#include "spec/limit_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace belljar {
namespace {

constexpr std::uint64_t kNearFraction = 10;  // within a tenth of the limit

bool was_denied(const Outcome& outcome, std::string_view kind) {
  return std::ranges::any_of(outcome.denials, [&](const Denial& denial) { return denial.kind == kind; });
}

std::optional<std::uint64_t> measured(std::uint64_t value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

std::uint64_t cpu_ms(const Outcome& outcome) {
  return outcome.usage.cpu_user_ms + outcome.usage.cpu_system_ms;
}

bool is_out_of_fuel(const Outcome& outcome) {
  return outcome.usage.fuel_used.value_or(0) >= outcome.limits.fuel.value;
}

// One function for each row of limits.def, by its name: a row without one does not compile. Each fills in what it
// knows.

void use_of_memory(const Outcome& outcome, LimitUse& use) {
  // Held by RLIMIT_DATA too, which leaves no trace: a run that failed may have wanted more than it was seen to have.
  const bool has_failed = outcome.status == RunStatus::error || outcome.status == RunStatus::signal;
  const bool is_weaker =
      std::ranges::find(outcome.isolation.weaker, "memory", &WeakerWall::name) != outcome.isolation.weaker.end();
  if (!has_failed || !is_weaker) use.used = measured(outcome.usage.memory_peak_bytes);
  use.struck = use.is_censored = outcome.status == RunStatus::memory || was_denied(outcome, "memory");
}

// The mean over the run. A rate has no end at which it strikes.
void use_of_cpus(const Outcome& outcome, LimitUse& use) {
  if (outcome.duration_ms > 0) use.used = cpu_ms(outcome) * 1000 / outcome.duration_ms;
}

void use_of_cpu_time(const Outcome& outcome, LimitUse& use) {
  use.used = cpu_ms(outcome);
  use.struck = use.is_censored = outcome.status == RunStatus::cpu && !is_out_of_fuel(outcome);
}

// How much of the peak lay in swap is not known.
void use_of_swap(const Outcome&, LimitUse&) {}

void use_of_fuel(const Outcome& outcome, LimitUse& use) {
  use.used = outcome.usage.fuel_used;
  use.struck = use.is_censored = outcome.status == RunStatus::cpu && is_out_of_fuel(outcome);
}

void use_of_tasks(const Outcome& outcome, LimitUse& use) {
  use.used = measured(outcome.usage.processes_peak);
  use.struck = use.is_censored = outcome.status == RunStatus::pids || was_denied(outcome, "tasks");
}

void use_of_timeout(const Outcome& outcome, LimitUse& use) {
  use.used = outcome.duration_ms;
  use.struck = use.is_censored = outcome.status == RunStatus::timeout;
}

bool has_used_up(const Outcome& outcome, std::uint64_t used, std::uint64_t cap) {
  return outcome.status == RunStatus::disk && !was_denied(outcome, "file_size") && used >= cap;
}

void use_of_tmp_size(const Outcome& outcome, LimitUse& use) {
  use.used = outcome.usage.disk_peak_bytes;
  use.struck = use.is_censored = has_used_up(outcome, outcome.usage.disk_peak_bytes, use.cap);
}

void use_of_tmp_inodes(const Outcome& outcome, LimitUse& use) {
  use.used = outcome.usage.disk_peak_inodes;
  use.struck = use.is_censored = has_used_up(outcome, outcome.usage.disk_peak_inodes, use.cap);
}

// What the largest file had is not known.
void use_of_file_size(const Outcome& outcome, LimitUse& use) {
  use.struck = use.is_censored = was_denied(outcome, "file_size");
}

void use_of_read_rate(const Outcome&, LimitUse&) {}

void use_of_write_rate(const Outcome&, LimitUse&) {}

void use_of_open_files(const Outcome&, LimitUse&) {}

// What was cut off is counted too.
void use_of_output(const Outcome& outcome, LimitUse& use) {
  use.used = std::max(outcome.standard_output.bytes_total, outcome.standard_error.bytes_total);
  use.struck = outcome.standard_output.truncated || outcome.standard_error.truncated;
  use.is_censored = outcome.status == RunStatus::output;
}

// Only of runs from which files were collected whole: of others it is not known what there was.
// Changes of a workspace are no collected files.
std::vector<std::uint64_t> collected_sizes(const Outcome& outcome) {
  std::vector<std::uint64_t> sizes;
  if (outcome.files_truncated) return sizes;
  for (const FileRecord& file : outcome.files) {
    if (!file.saved_as.empty()) sizes.push_back(file.size);
  }
  return sizes;
}

void use_of_collect_file(const Outcome& outcome, LimitUse& use) {
  const std::vector<std::uint64_t> sizes = collected_sizes(outcome);
  if (!sizes.empty()) use.used = std::ranges::max(sizes);
}

void use_of_collect_size(const Outcome& outcome, LimitUse& use) {
  const std::vector<std::uint64_t> sizes = collected_sizes(outcome);
  if (!sizes.empty()) use.used = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

void use_of_workspace_entries(const Outcome&, LimitUse&) {}

void use_of_collect_entries(const Outcome&, LimitUse&) {}

void use_of_net_connections(const Outcome&, LimitUse&) {}

void use_of_net_rate(const Outcome&, LimitUse&) {}

void use_of_net_size(const Outcome& outcome, LimitUse& use) {
  use.used = measured(outcome.usage.net_sent_bytes + outcome.usage.net_received_bytes);
}

void use_of_net_idle(const Outcome&, LimitUse&) {}

void use_of_net_time(const Outcome&, LimitUse&) {}

}  // namespace

std::vector<LimitUse> limit_uses(const Outcome& outcome) {
  std::vector<LimitUse> uses;
  uses.reserve(limit_rows().size());
  for (const LimitRow& row : limit_rows()) uses.push_back({&row, (outcome.limits.*row.field).value, std::nullopt});
  if (!tells_of_use(outcome.status)) return uses;
  std::size_t index = 0;
#define LIMIT(name, flag, unit, preset, least, most, what, sentence, container, kernel, wasm) \
  use_of_##name(outcome, uses[index++]);
#include "spec/limits.def"
#undef LIMIT
  // Where a limit struck, the peak that was seen just before may be a little below it.
  for (LimitUse& use : uses) {
    if (use.is_censored) use.used = std::max(use.used.value_or(0), use.cap);
  }
  return uses;
}

std::vector<std::string> near_limits(const Outcome& outcome) {
  std::vector<std::string> sentences;
  for (const LimitUse& use : limit_uses(outcome)) {
    // A rate has no end: what it slows is in cpu_throttled_ms.
    const bool is_rate = use.row->unit == LimitUnit::millicpus;
    if (!use.used || use.struck || is_rate || use.cap == 0) continue;
    if (*use.used < use.cap - use.cap / kNearFraction) continue;
    sentences.push_back(fmt::format("--{}: used {} of the limit of {}", use.row->flag,
                                    show_amount(use.row->unit, *use.used), format_limit(use.row->unit, use.cap)));
  }
  return sentences;
}

bool is_limit_status(RunStatus status) {
  switch (status) {
    case RunStatus::timeout:
    case RunStatus::cpu:
    case RunStatus::memory:
    case RunStatus::pids:
    case RunStatus::disk:
    case RunStatus::output:
      return true;
    case RunStatus::ok:
    case RunStatus::error:
    case RunStatus::signal:
    case RunStatus::cancelled:
    case RunStatus::denied:
    case RunStatus::tampered:
    case RunStatus::internal:
      break;
  }
  return false;
}

bool tells_of_use(RunStatus status) {
  return status != RunStatus::cancelled && status != RunStatus::denied && status != RunStatus::internal;
}

}  // namespace belljar
