#include "kernel/arena/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>

#include "kernel/base/hosted.h"
#include "kernel/task/sandbox_facts.h"

namespace belljar::kernel {
namespace {

TEST(Random, BlocksAreChaCha20) {
  // The keystream of a key of zeros, at the counters 0 and 1 (RFC 8439, appendix A.1).
  const std::uint32_t key[8] = {};
  std::uint32_t block[16];
  chacha20_block(key, 0, block);
  EXPECT_EQ(block[0], 0xade0b876U);
  EXPECT_EQ(block[15], 0x8665eeb2U);
  chacha20_block(key, 1, block);
  EXPECT_EQ(block[0], 0xbee7079fU);
}

TEST(Random, NoTwoCallsGetTheSame) {
  HostedKernel kernel;
  std::set<std::array<std::uint8_t, 16>> seen;
  for (int i = 0; i < 2000; ++i) {
    std::array<std::uint8_t, 16> bytes{};
    fill_random(bytes.data(), bytes.size());
    EXPECT_TRUE(seen.insert(bytes).second);
  }
}

TEST(Random, OneKeyMakesALongStream) {
  HostedKernel kernel;
  RandomKey key;
  std::array<std::uint8_t, 4096> bytes{};
  key.fill(bytes);
  std::array<int, 256> counts{};
  for (const std::uint8_t byte : bytes) ++counts[byte];
  for (const int count : counts) EXPECT_LT(count, 64);  // 16 on average
}

TEST(Random, TheSeedIsUsedOnceAndWiped) {
  HostedKernel kernel;
  std::memset(sandbox_facts().random_seed, 0x5a, sizeof sandbox_facts().random_seed);
  std::uint8_t byte = 0;
  fill_random(&byte, 1);
  for (const std::uint8_t each : sandbox_facts().random_seed) EXPECT_EQ(each, 0);
}

}  // namespace
}  // namespace belljar::kernel
