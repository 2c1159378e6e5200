#include "base/sha256.h"

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace belljar {
namespace {

// FIPS 180-4, 4.2.2.
alignas(16) constexpr std::uint32_t kRoundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// What 6.2.2 calls the message schedule: the block's 16 words, big-endian, and 48 more made of them.
void expand(const unsigned char* block, std::uint32_t words[64]) {
  std::memcpy(words, block, 64);
  for (int t = 0; t < 16; ++t) words[t] = __builtin_bswap32(words[t]);
  for (int t = 16; t < 64; ++t) {
    const std::uint32_t a = words[t - 15];
    const std::uint32_t b = words[t - 2];
    const std::uint32_t first = std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3);
    const std::uint32_t second = std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10);
    words[t] = words[t - 16] + first + words[t - 7] + second;
  }
}

// The same with the instructions of SHA-NI, four rounds at a time. They keep the state in two registers, in the order
// ABEF and CDGH, and the words of the schedule in four.
[[gnu::target("sha,sse4.1,ssse3")]] void compress_with_sha_ni(std::uint32_t state[8], const unsigned char* bytes,
                                                              std::size_t blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto* const halves = reinterpret_cast<__m128i*>(state);
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(halves), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(halves + 1), 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (; blocks > 0; --blocks, bytes += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i words[4];
    for (int i = 0; i < 4; ++i) {
      const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes) + i);
      words[i] = _mm_shuffle_epi8(raw, big_endian);
    }
    for (int i = 0; i < 16; ++i) {
      const __m128i constants = _mm_load_si128(reinterpret_cast<const __m128i*>(kRoundConstants) + i);
      const __m128i sums = _mm_add_epi32(words[i % 4], constants);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sums);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sums, 0x0E));
      if (i >= 12) continue;
      const __m128i last = words[(i + 3) % 4];
      const __m128i begun = _mm_add_epi32(_mm_sha256msg1_epu32(words[i % 4], words[(i + 1) % 4]),
                                          _mm_alignr_epi8(last, words[(i + 2) % 4], 4));
      words[i % 4] = _mm_sha256msg2_epu32(begun, last);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(halves, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(halves + 1, _mm_alignr_epi8(dchg, feba, 8));
}

bool has_sha_ni() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kNeeded = bit_SSSE3 | bit_SSE4_1;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kNeeded) != kNeeded) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

}  // namespace

void sha256_compress_portably(std::uint32_t state[8], const unsigned char* bytes, std::size_t blocks) {
  for (; blocks > 0; --blocks, bytes += 64) {
    std::uint32_t words[64];
    expand(bytes, words);
    std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    std::uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; ++t) {
      const std::uint32_t sum_e = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t sum_a = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t first = h + sum_e + ((e & f) ^ (~e & g)) + kRoundConstants[t] + words[t];
      const std::uint32_t second = sum_a + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    }
    const std::uint32_t after[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state[i] += after[i];
  }
}

Sha256Compression sha256_best_compression() {
  static const Sha256Compression kBest = has_sha_ni() ? compress_with_sha_ni : sha256_compress_portably;
  return kBest;
}

void Sha256::update(std::string_view bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t size = bytes.size();
  const std::size_t held = bytes_total_ % kBlockBytes;
  bytes_total_ += size;
  if (held > 0) {
    const std::size_t taken = std::min(size, kBlockBytes - held);
    std::copy_n(data, taken,
                rest_.begin() + static_cast<std::ptrdiff_t>(held));  // not memcpy(): an empty view may be null
    data += taken;
    size -= taken;
    if (held + taken < kBlockBytes) return;
    compress_(state_.data(), rest_.data(), 1);
  }
  compress_(state_.data(), data, size / kBlockBytes);
  std::copy_n(data + size / kBlockBytes * kBlockBytes, size % kBlockBytes, rest_.begin());
}

std::string Sha256::finish() {
  // FIPS 180-4, 5.1.1: a one bit, zeros, and the length in bits as a big-endian number of 64 bits.
  const std::uint64_t bits = bytes_total_ * 8;
  std::array<char, 2 * kBlockBytes> padding{};
  padding[0] = static_cast<char>(0x80);
  const std::size_t held = bytes_total_ % kBlockBytes;
  const std::size_t size = (held < kBlockBytes - 8 ? kBlockBytes : 2 * kBlockBytes) - held;
  const std::uint64_t big_endian = __builtin_bswap64(bits);
  std::memcpy(padding.data() + size - sizeof big_endian, &big_endian, sizeof big_endian);
  update({padding.data(), size});

  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(64);
  for (const std::uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += kDigits[word >> shift & 0xFU];
  }
  return hex;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

}  // namespace belljar
