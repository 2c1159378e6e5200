#include "tiers/container/own_stat.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string_view>

#include "spec/errors.h"

namespace belljar::container {
namespace {

// Field `number` of stat(5)'s line, counted from 1; the second is in parentheses and may hold spaces.
std::string_view field(std::string_view line, int number) {
  std::size_t position = line.rfind(')');
  for (int at = 2; at < number && position != std::string_view::npos; ++at) position = line.find(' ', position + 1);
  if (position == std::string_view::npos) return {};
  const std::string_view rest = line.substr(position + 1);
  return rest.substr(0, rest.find_first_of(" \n"));
}

MemoryArea area(std::string_view line, int first_field) {
  std::uintptr_t ends[2] = {};
  for (int i = 0; i < 2; ++i) {
    const std::string_view text = field(line, first_field + i);
    std::from_chars(text.data(), text.data() + text.size(), ends[i]);
  }
  if (ends[0] == 0 || ends[1] <= ends[0]) return {};
  return {reinterpret_cast<char*>(ends[0]),
          ends[1] - ends[0]};  // NOLINT(performance-no-int-to-ptr): an address as text
}

}  // namespace

Result<OwnStat> read_own_stat() {
  const auto line = read_file_at(AT_FDCWD, "/proc/self/stat", 4096);
  if (!line) {
    return fail(ErrorCode::host_unsupported,
                fmt::format("can't read /proc/self/stat: {}; is /proc mounted?", errno_text(line.error().value)));
  }
  return OwnStat{std::string(field(*line, 22)), area(*line, 48), area(*line, 50)};
}

bool is_alive(pid_t pid, std::string_view start_time) {
  const auto line = read_file_at(AT_FDCWD, fmt::format("/proc/{}/stat", pid).c_str(), 4096);
  if (!line) return false;
  // A zombie does nothing any more, however long its parent leaves it lying.
  const std::string_view state = field(*line, 3);
  return state != "Z" && state != "X" && field(*line, 22) == start_time;
}

}  // namespace belljar::container
