#include "tiers/container/cpu_view.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <charconv>

#include "spec/errors.h"

namespace belljar::container {
namespace {

constexpr std::uint64_t kPinsPerCpu = 1 << 16;
constexpr const char* kCpuFolder = "/sys/devices/system/cpu";

// Takes `wanted` of `available`: pass after pass, the processors whose next pin is free, the current one last.
void pin_least_used(const LeaseFile& pins, const cpu_set_t& available, int wanted, cpu_set_t* chosen) {
  const auto current = static_cast<std::size_t>(std::max(::sched_getcpu(), 0));
  for (std::uint64_t level = 0; level < kPinsPerCpu && CPU_COUNT(chosen) < wanted; ++level) {
    for (std::size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(chosen) < wanted; ++i) {
      const std::size_t cpu = (current + 1 + i) % CPU_SETSIZE;
      if (!CPU_ISSET(cpu, &available) || CPU_ISSET(cpu, chosen)) continue;
      if (pins.try_take(cpu * kPinsPerCpu + level)) CPU_SET(cpu, chosen);
    }
  }
}

// /proc/stat with the chosen processors and no load: programs count its cpuN lines and read its boot time.
std::string make_stat(const cpu_set_t& cpus) {
  timespec now{};
  timespec up{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &up);
  std::string text = "cpu  0 0 0 0 0 0 0 0 0 0\n";
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) text += fmt::format("cpu{} 0 0 0 0 0 0 0 0 0 0\n", cpu);
  }
  return text + fmt::format("intr 0\nctxt 0\nbtime {}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n",
                            now.tv_sec - up.tv_sec);
}

}  // namespace

std::string format_cpu_list(const cpu_set_t& cpus) {
  std::string text;
  for (std::size_t first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &cpus)) continue;
    std::size_t last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cpus)) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("-{}", last);
    first = last;
  }
  return text;
}

std::string filter_cpuinfo(std::string_view cpuinfo, const cpu_set_t& cpus) {
  std::string kept;
  while (!cpuinfo.empty()) {
    std::size_t end = cpuinfo.find("\n\n");
    end = end == std::string_view::npos ? cpuinfo.size() : end + 2;
    const std::string_view block = cpuinfo.substr(0, end);
    cpuinfo.remove_prefix(end);
    const std::size_t colon = block.find(": ");
    std::size_t number = CPU_SETSIZE;
    if (block.starts_with("processor") && colon != std::string_view::npos) {
      std::from_chars(block.data() + colon + 2, block.data() + block.size(), number);
    }
    if (number < CPU_SETSIZE && CPU_ISSET(number, &cpus)) kept += block;
  }
  return kept;
}

Result<CpuChoice> choose_cpus(std::uint64_t millicpus) {
  cpu_set_t available{};
  if (::sched_getaffinity(0, sizeof available, &available) != 0) {
    return fail(ErrorCode::host_unsupported, fmt::format("can't read the processor affinity: {}", errno_text(errno)));
  }
  const int wanted = static_cast<int>((millicpus + 999) / 1000);
  const int present = CPU_COUNT(&available);
  if (wanted > present) {
    return fail(ErrorCode::cannot_enforce,
                fmt::format("--cpus {}: this host lets Belljar use {} processor{}; ask for at most that",
                            format_limit(LimitUnit::millicpus, millicpus), present, present == 1 ? "" : "s"));
  }
  CpuChoice choice;
  if (wanted == present) {
    choice.cpus = available;
  } else {
    choice.pins = TRY(LeaseFile::open("cpu-pins"));
    pin_least_used(*choice.pins, available, wanted, &choice.cpus);
  }
  return choice;
}

CpuView view_cpus(const cpu_set_t& cpus) {
  CpuView view;
  const auto cpuinfo = read_file_at(AT_FDCWD, "/proc/cpuinfo", 16 << 20);
  if (cpuinfo) view.proc_files.push_back({"/proc/cpuinfo", filter_cpuinfo(*cpuinfo, cpus)});
  view.proc_files.push_back({"/proc/stat", make_stat(cpus)});

  view.sys_folders = {"/sys", "/sys/devices", "/sys/devices/system", kCpuFolder};
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) view.sys_folders.push_back(fmt::format("{}/cpu{}", kCpuFolder, cpu));
  }
  const std::string list = format_cpu_list(cpus) + "\n";
  for (const char* name : {"online", "present", "possible"}) {
    view.sys_files.push_back({fmt::format("{}/{}", kCpuFolder, name), list});
  }
  return view;
}

}  // namespace belljar::container
