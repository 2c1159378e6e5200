#include "tiers/container/cpu_view.h"

#include <gtest/gtest.h>

#include <vector>

#include "spec/errors.h"

namespace belljar::container {
namespace {

cpu_set_t set_of(std::initializer_list<std::size_t> cpus) {
  cpu_set_t set{};
  for (const std::size_t cpu : cpus) CPU_SET(cpu, &set);
  return set;
}

TEST(CpuView, FormatsListsAsTheKernelDoes) {
  EXPECT_EQ(format_cpu_list(set_of({0})), "0");
  EXPECT_EQ(format_cpu_list(set_of({0, 2, 3, 4, 7})), "0,2-4,7");
  EXPECT_EQ(format_cpu_list(set_of({})), "");
}

TEST(CpuView, KeepsOnlyTheChosenBlocksOfCpuinfo) {
  constexpr std::string_view kCpuinfo =
      "processor\t: 0\nmodel name\t: A\n\nprocessor\t: 1\nmodel name\t: B\n\nprocessor\t: 10\nmodel name\t: C\n\n";
  EXPECT_EQ(filter_cpuinfo(kCpuinfo, set_of({1})), "processor\t: 1\nmodel name\t: B\n\n");
  EXPECT_EQ(filter_cpuinfo(kCpuinfo, set_of({0, 10})),
            "processor\t: 0\nmodel name\t: A\n\nprocessor\t: 10\nmodel name\t: C\n\n");
}

TEST(CpuView, RoundsTheQuotaUp) {
  for (const std::uint64_t millicpus : {10U, 500U, 1000U}) {
    const auto view = choose_cpus(millicpus);
    ASSERT_TRUE(view) << view.error().message;
    EXPECT_EQ(CPU_COUNT(&view->cpus), 1);
  }
}

TEST(CpuView, SpreadsSandboxesOverProcessors) {
  cpu_set_t available{};
  ASSERT_EQ(::sched_getaffinity(0, sizeof available, &available), 0);
  if (CPU_COUNT(&available) < 2) {
    std::puts("NOT COVERED: spreading pins over processors: this host has one processor");
    return;
  }
  // More than two, because sandboxes of others may be pinned unevenly.
  std::vector<CpuChoice> choices;
  cpu_set_t used{};
  for (int i = 0; i < 20; ++i) {
    auto choice = choose_cpus(1000);
    ASSERT_TRUE(choice) << choice.error().message;
    CPU_OR(&used, &used, &choice->cpus);
    choices.push_back(std::move(*choice));
  }
  EXPECT_GE(CPU_COUNT(&used), 2);
}

TEST(CpuView, RefusesMoreThanTheHostHas) {
  const auto view = choose_cpus(4096000);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, ErrorCode::cannot_enforce);
}

}  // namespace
}  // namespace belljar::container
