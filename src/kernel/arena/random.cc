#include "kernel/arena/random.h"

#include <time.h>

#include <bit>
#include <cstring>

#include "kernel/arena/lock.h"
#include "kernel/arena/roots.h"
#include "kernel/host/calls.h"
#include "kernel/task/sandbox_facts.h"

namespace belljar::kernel {

// The generator's key is replaced with each key that is drawn (fast key erasure), under a lock in the arena. So a
// fork(2) needs no care: parent and child never draw the same one.
class RandomState {
 public:
  void draw(std::uint32_t key[8]);

 private:
  void stir(std::uint8_t* seed);

  // The heap's rank, the last: it is held over nothing but computing.
  Lock lock_{LockRank::heap};
  bool is_seeded_ = false;
  std::uint32_t until_stirred_ = 0;
  std::uint32_t key_[8] = {};
};

namespace {

constexpr std::uint32_t kDrawsBetweenStirs = 256;

void quarter_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d) {
  a += b, d = std::rotl(d ^ a, 16);
  c += d, b = std::rotl(b ^ c, 12);
  a += b, d = std::rotl(d ^ a, 8);
  c += d, b = std::rotl(b ^ c, 7);
}

// The processor's own generator, where it has one that works just now.
bool read_processor(std::uint64_t& word) {
  unsigned char ok = 0;
  asm volatile("rdrand %0; setc %1" : "=r"(word), "=q"(ok)::"cc");
  return ok != 0;
}

bool has_processor_generator() {
  std::uint32_t a = 1, b = 0, c = 0, d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (c & 1U << 30) != 0;
}

}  // namespace

void chacha20_block(const std::uint32_t key[8], std::uint64_t counter, std::uint32_t out[16]) {
  std::uint32_t input[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  std::memcpy(input + 4, key, 32);
  input[12] = static_cast<std::uint32_t>(counter);
  input[13] = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t x[16];
  std::memcpy(x, input, sizeof x);
  for (int round = 0; round < 10; ++round) {
    quarter_round(x[0], x[4], x[8], x[12]);
    quarter_round(x[1], x[5], x[9], x[13]);
    quarter_round(x[2], x[6], x[10], x[14]);
    quarter_round(x[3], x[7], x[11], x[15]);
    quarter_round(x[0], x[5], x[10], x[15]);
    quarter_round(x[1], x[6], x[11], x[12]);
    quarter_round(x[2], x[7], x[8], x[13]);
    quarter_round(x[3], x[4], x[9], x[14]);
  }
  for (int i = 0; i < 16; ++i) out[i] = x[i] + input[i];
}

// Fresh randomness into the key: from the host's seed at first, and from the processor and the clocks again and again.
void RandomState::stir(std::uint8_t* seed) {
  if (!is_seeded_) {
    std::memcpy(key_, seed, sizeof key_);
    std::memset(seed, 0, sizeof key_);
    is_seeded_ = true;
  }
  static_assert(sizeof key_ == 4 * sizeof(std::uint64_t));
  const bool has_processor = has_processor_generator();
  for (int i = 0; i < 8; i += 2) {
    std::uint64_t word = 0;
    if (!has_processor || !read_processor(word))
      word = __builtin_ia32_rdtsc() ^ std::rotl(host::clock_ns(CLOCK_REALTIME), 32);
    key_[i] ^= static_cast<std::uint32_t>(word);
    key_[i + 1] ^= static_cast<std::uint32_t>(word >> 32);
  }
  until_stirred_ = kDrawsBetweenStirs;
}

void RandomState::draw(std::uint32_t key[8]) {
  std::uint32_t block[16];
  std::uint8_t* const seed = sandbox_facts().random_seed;  // makes the facts where there are none: before the lock
  const LockGuard guard(lock_);
  if (until_stirred_ == 0) stir(seed);
  --until_stirred_;
  chacha20_block(key_, __builtin_ia32_rdtsc(), block);
  std::memcpy(key_, block, sizeof key_);
  std::memcpy(key, block + 8, sizeof key_);
}

RandomKey::RandomKey() {
  root_object(arena_roots().random).draw(words_);
}

RandomKey::~RandomKey() {
  std::memset(words_, 0, sizeof words_);
  asm volatile("" ::"r"(words_) : "memory");  // so that it is done though nobody reads it
}

void RandomKey::fill(std::span<std::uint8_t> bytes) {
  std::uint32_t block[16];
  while (!bytes.empty()) {
    chacha20_block(words_, block_++, block);
    const std::size_t count = bytes.size() < sizeof block ? bytes.size() : sizeof block;
    std::memcpy(bytes.data(), block, count);
    bytes = bytes.subspan(count);
  }
}

void fill_random(void* to, std::size_t size) {
  RandomKey().fill({static_cast<std::uint8_t*>(to), size});
}

}  // namespace belljar::kernel
