// SHA-256 (FIPS 180-4). Our own, and not OpenSSL's: linked statically, that one asks the processor for its abilities in
// every process's start (0.03 ms of the 2 that a sandbox takes), and whoever links libbelljar.a would need it too. The
// tests hold both implementations here against OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace belljar {

// Takes `blocks` blocks of 64 bytes into the state.
using Sha256Compression = void (*)(std::uint32_t state[8], const unsigned char* bytes, std::size_t blocks);
void sha256_compress_portably(std::uint32_t state[8], const unsigned char* bytes, std::size_t blocks);
// The processor's own instructions for it where it has them (six times as fast), else the former.
Sha256Compression sha256_best_compression();

class Sha256 {
 public:
  explicit Sha256(Sha256Compression compress = sha256_best_compression()) : compress_(compress) {}

  void update(std::string_view bytes);

  // The digest as 64 lower-case hexadecimal digits. Call once, at the end.
  std::string finish();

 private:
  static constexpr std::size_t kBlockBytes = 64;

  Sha256Compression compress_;
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, kBlockBytes> rest_{};  // bytes that are no whole block yet
  std::uint64_t bytes_total_ = 0;
};

std::string sha256_of(std::string_view bytes);

}  // namespace belljar
