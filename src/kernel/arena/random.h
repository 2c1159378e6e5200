// Random bytes: getrandom(2), /dev/urandom, AT_RANDOM, uuids of /proc. No call of the host is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace belljar::kernel {

// A key that no two calls share, in any process: what a ChaCha20 stream is made with.
class RandomKey {
 public:
  RandomKey();  // from the sandbox's generator
  ~RandomKey();
  RandomKey(const RandomKey&) = delete;
  RandomKey& operator=(const RandomKey&) = delete;
  // The next bytes of its stream.
  void fill(std::span<std::uint8_t> bytes);

 private:
  std::uint32_t words_[8];
  std::uint64_t block_ = 0;
};

void fill_random(void* to, std::size_t size);

// One ChaCha20 block (RFC 8439, with a 64-bit counter and nonce 0).
void chacha20_block(const std::uint32_t key[8], std::uint64_t counter, std::uint32_t out[16]);

}  // namespace belljar::kernel
