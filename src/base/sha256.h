// SHA-256 (FIPS 180-4), as OpenSSL computes it.
#pragma once

#define OPENSSL_SUPPRESS_DEPRECATED  // the plain functions: the newer interface reads configuration of the host's
#include <openssl/sha.h>

#include <string>
#include <string_view>

namespace belljar {

class Sha256 {
 public:
  Sha256() { ::SHA256_Init(&state_); }

  void update(std::string_view bytes) { ::SHA256_Update(&state_, bytes.data(), bytes.size()); }

  // The digest as 64 lower-case hexadecimal digits. Call once, at the end.
  std::string finish();

 private:
  SHA256_CTX state_;
};

std::string sha256_of(std::string_view bytes);

}  // namespace belljar
