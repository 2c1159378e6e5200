#include "base/sha256.h"

#include <array>

namespace belljar {

std::string Sha256::finish() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  ::SHA256_Final(digest.data(), &state_);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 0xfU];
  }
  return hex;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

}  // namespace belljar
