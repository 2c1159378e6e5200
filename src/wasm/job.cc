#include "wasm/job.h"

#include <charconv>
#include <string_view>

namespace belljar::wasm {
namespace {

constexpr std::string_view kCompile = "compile";
constexpr std::string_view kRun = "run";
constexpr std::string_view kAny = "any";
constexpr std::string_view kThis = "this";

std::optional<std::uint64_t> to_number(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

std::vector<std::string> CompileJob::to_arguments() const {
  return {kProgramName,
          std::string(kCompile),
          path,
          fuel == FuelIs::counted ? "1" : "0",
          std::string(code_for == CodeFor::any_processor ? kAny : kThis),
          std::to_string(bytes_max)};
}

std::optional<CompileJob> CompileJob::from_arguments(const std::vector<std::string>& arguments) {
  if (arguments.size() != 6 || arguments[1] != kCompile) return std::nullopt;
  const auto bytes_max = to_number(arguments[5]);
  if (!bytes_max || (arguments[4] != kAny && arguments[4] != kThis)) return std::nullopt;
  return CompileJob{.path = arguments[2],
                    .fuel = arguments[3] == "1" ? FuelIs::counted : FuelIs::not_counted,
                    .code_for = arguments[4] == kAny ? CodeFor::any_processor : CodeFor::this_processor,
                    .bytes_max = *bytes_max};
}

std::vector<std::string> RunJob::to_arguments() const {
  std::vector<std::string> all = {kProgramName,
                                  std::string(kRun),
                                  path,
                                  fuel ? std::to_string(*fuel) : "",
                                  std::to_string(memory_bytes),
                                  std::to_string(folders.size()),
                                  std::to_string(variables.size())};
  all.insert(all.end(), folders.begin(), folders.end());
  all.insert(all.end(), variables.begin(), variables.end());
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

std::optional<RunJob> RunJob::from_arguments(const std::vector<std::string>& arguments) {
  constexpr std::size_t kFixed = 7;
  if (arguments.size() < kFixed || arguments[1] != kRun) return std::nullopt;
  RunJob job{.path = arguments[2]};
  if (!arguments[3].empty()) {
    job.fuel = to_number(arguments[3]);
    if (!job.fuel) return std::nullopt;
  }
  const auto memory_bytes = to_number(arguments[4]);
  const auto folders = to_number(arguments[5]);
  const auto variables = to_number(arguments[6]);
  const std::size_t words = arguments.size() - kFixed;
  if (!memory_bytes || !folders || *folders > words || !variables || *variables > words - *folders) return std::nullopt;
  job.memory_bytes = *memory_bytes;
  const auto first = arguments.begin() + kFixed;
  const auto second = first + static_cast<std::ptrdiff_t>(*folders);
  const auto third = second + static_cast<std::ptrdiff_t>(*variables);
  job.folders.assign(first, second);
  job.variables.assign(second, third);
  job.arguments.assign(third, arguments.end());
  return job;
}

}  // namespace belljar::wasm
