#include "spec/outcome.h"

#include <csignal>

#include "base/json.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr int kLimitExitStatus = 124;
constexpr int kSignalExitStatus = 128;

template <typename Number>
Json optional_number(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

// Zero stands for what could not be measured.
Json unless_zero(std::uint64_t number) {
  return number > 0 ? Json(number) : Json(nullptr);
}

void put_stream(Json& record, const std::string& name, const CapturedStream& stream, StreamContent content) {
  if (content == StreamContent::included) {
    put_bytes(record, name, stream.bytes);
  }
  record[name + "_truncated"] = stream.truncated;
  record[name + "_bytes_total"] = stream.bytes_total;
}

// "memory_bytes", "timeout_ms": the unit stands in the key; cores and counts need none. null: there is no such limit.
Json limits_record(const Limits& limits) {
  Json record = Json::object();
  for (const LimitRow& row : limit_rows()) {
    const std::uint64_t value = (limits.*row.field).value;
    std::string key(row.name);
    Json shown = value;
    switch (row.unit) {
      case LimitUnit::bytes:
        key += "_bytes";
        break;
      case LimitUnit::milliseconds:
        key += "_ms";
        break;
      case LimitUnit::millicpus:
        shown = static_cast<double>(value) / 1000;
        break;
      case LimitUnit::count:
        break;
    }
    record[key] = is_unlimited(row, value) ? Json(nullptr) : shown;
  }
  return record;
}

Json usage_record(const Usage& usage) {
  return {{"cpu_user_ms", usage.cpu_user_ms},
          {"cpu_system_ms", usage.cpu_system_ms},
          {"cpu_throttled_ms", optional_number(usage.cpu_throttled_ms)},
          {"fuel_used", optional_number(usage.fuel_used)},
          {"memory_peak_bytes", unless_zero(usage.memory_peak_bytes)},
          {"memory_peak_is_sampled", usage.memory_peak_is_sampled},
          {"oom_kills", usage.oom_kills},
          {"processes_peak", unless_zero(usage.processes_peak)},
          {"read_bytes", optional_number(usage.read_bytes)},
          {"written_bytes", optional_number(usage.written_bytes)},
          {"disk_written_bytes", usage.disk_written_bytes},
          {"disk_written_inodes", usage.disk_written_inodes},
          {"disk_peak_bytes", usage.disk_peak_bytes},
          {"disk_peak_inodes", usage.disk_peak_inodes},
          {"net_sent_bytes", usage.net_sent_bytes},
          {"net_received_bytes", usage.net_received_bytes},
          {"start_us", unless_zero(usage.start_us)}};
}

Json denials_record(const std::vector<Denial>& denials) {
  Json record = Json::array();
  for (const Denial& denial : denials) {
    record.push_back({{"kind", denial.kind},
                      {"target", denial.target},
                      {"rule", denial.rule},
                      {"hint", denial.hint},
                      {"count", denial.count}});
  }
  return record;
}

Json network_record(const std::vector<NetworkUse>& uses) {
  Json record = Json::array();
  for (const NetworkUse& use : uses) {
    record.push_back({{"target", use.target},
                      {"rule", use.rule},
                      {"count", use.count},
                      {"sent_bytes", use.sent_bytes},
                      {"received_bytes", use.received_bytes}});
  }
  return record;
}

std::string_view change_name(FileChange change) {
  switch (change) {
    case FileChange::added:
      return "added";
    case FileChange::modified:
      return "modified";
    case FileChange::deleted:
      break;
  }
  return "deleted";
}

Json files_record(const std::vector<FileRecord>& files) {
  Json record = Json::array();
  for (const FileRecord& file : files) {
    Json row = Json::object();
    put_bytes(row, "path", file.path);
    put_bytes(row, "saved_as", file.saved_as);
    row["size"] = file.size;
    row["sha256"] = file.sha256;
    row["change"] = change_name(file.change);
    record.push_back(std::move(row));
  }
  return record;
}

Json skipped_record(const std::vector<SkippedFile>& files) {
  Json record = Json::array();
  for (const SkippedFile& file : files) {
    Json row = Json::object();
    put_bytes(row, "path", file.path);
    row["reason"] = file.reason;
    record.push_back(std::move(row));
  }
  return record;
}

Json walls_record(const std::vector<WeakerWall>& walls) {
  Json record = Json::array();
  for (const WeakerWall& wall : walls) record.push_back({{"name", wall.name}, {"why", wall.why}});
  return record;
}

Json isolation_record(const Isolation& isolation) {
  return {{"tier", isolation.tier.empty() ? Json(nullptr) : Json(isolation.tier)},
          {"enforced", isolation.enforced},
          {"weaker", walls_record(isolation.weaker)},
          {"missing", walls_record(isolation.missing)}};
}

std::string_view message_of(const Error& error, StreamContent content) {
  return content == StreamContent::omitted_with_words ? error_text(error.code) : error.message;
}

Json error_record(const std::optional<Error>& error, StreamContent content) {
  if (!error) return nullptr;
  return {{"code", error_name(error->code)}, {"message", message_of(*error, content)}};
}

// The status of a program that ended by itself, whatever the reason was.
int own_exit_status(const Outcome& outcome) {
  if (outcome.exit_code) return *outcome.exit_code;
  if (outcome.signal) return kSignalExitStatus + *outcome.signal;
  return kLimitExitStatus;
}

}  // namespace

std::string_view status_name(RunStatus status) {
  switch (status) {
#define STATUS(name, meaning) \
  case RunStatus::name:       \
    return #name;
    BELLJAR_STATUSES(STATUS)
#undef STATUS
  }
  return "internal";
}

std::optional<RunStatus> find_status(std::string_view name) {
#define STATUS(row, meaning) \
  if (name == #row) return RunStatus::row;
  BELLJAR_STATUSES(STATUS)
#undef STATUS
  return std::nullopt;
}

int exit_status(const Outcome& outcome) {
  switch (outcome.status) {
    case RunStatus::ok:
      return outcome.files_truncated ? error_exit_status(ErrorCode::bad_collect) : 0;
    case RunStatus::error:
    case RunStatus::signal:
    case RunStatus::pids:
    case RunStatus::disk:
      return own_exit_status(outcome);
    case RunStatus::timeout:
    case RunStatus::cpu:
    case RunStatus::memory:
    case RunStatus::output:
    case RunStatus::tampered:
      return kLimitExitStatus;
    case RunStatus::cancelled:
      return kSignalExitStatus + outcome.signal.value_or(SIGINT);
    case RunStatus::denied:
    case RunStatus::internal:
      break;
  }
  return error_exit_status(outcome.error ? outcome.error->code : ErrorCode::internal);
}

std::string outcome_to_json(const Outcome& outcome, StreamContent streams) {
  Json record = Json::object();
  record["status"] = status_name(outcome.status);
  record["exit_code"] = optional_number(outcome.exit_code);
  record["signal"] = optional_number(outcome.signal);
  record["reason"] = outcome.error ? message_of(*outcome.error, streams) : outcome.reason;
  record["error"] = error_record(outcome.error, streams);
  put_stream(record, "stdout", outcome.standard_output, streams);
  put_stream(record, "stderr", outcome.standard_error, streams);
  record["duration_ms"] = outcome.duration_ms;
  record["usage"] = usage_record(outcome.usage);
  record["limits"] = outcome.has_limits ? limits_record(outcome.limits) : Json(nullptr);
  record["denials"] = denials_record(outcome.denials);
  record["warnings"] = outcome.warnings;
  record["network"] = network_record(outcome.network);
  if (streams == StreamContent::included || streams == StreamContent::omitted) {
    record["files"] = files_record(outcome.files);
    record["files_skipped"] = skipped_record(outcome.files_skipped);
    record["files_truncated"] = outcome.files_truncated;
  }
  record["changes_id"] = outcome.changes_id.empty() ? Json(nullptr) : Json(outcome.changes_id);
  record["isolation"] = isolation_record(outcome.isolation);
  return dump_json(record);
}

}  // namespace belljar
