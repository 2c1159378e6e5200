#include "base/sha256.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <random>

namespace belljar {
namespace {

std::string digest(Sha256Compression compress, std::string_view bytes) {
  Sha256 hash(compress);
  hash.update(bytes);
  return hash.finish();
}

std::string digest_by_openssl(std::string_view bytes) {
  unsigned char raw[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EXPECT_EQ(::EVP_Digest(bytes.data(), bytes.size(), raw, &size, ::EVP_sha256(), nullptr), 1);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", raw[i]);
    hex += two;
  }
  return hex;
}

class Sha256Test : public testing::TestWithParam<Sha256Compression> {};
INSTANTIATE_TEST_SUITE_P(Ways, Sha256Test, testing::Values(sha256_compress_portably, sha256_best_compression()));

// The examples of FIPS 180-2, appendix B.
TEST_P(Sha256Test, KnowsThePublishedExamples) {
  EXPECT_EQ(digest(GetParam(), ""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest(GetParam(), "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest(GetParam(), "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(GetParam(), std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_P(Sha256Test, AgreesWithOpenSslAtEveryLength) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same bytes in every run
  std::string bytes;
  for (int length = 0; length < 700; ++length) {
    EXPECT_EQ(digest(GetParam(), bytes), digest_by_openssl(bytes)) << length;
    bytes += static_cast<char>(random());
  }
  for (int i = 0; i < 300'000; ++i) bytes += static_cast<char>(random());
  EXPECT_EQ(digest(GetParam(), bytes), digest_by_openssl(bytes));
  EXPECT_EQ(digest(GetParam(), std::string_view(bytes).substr(1)),
            digest_by_openssl(std::string_view(bytes).substr(1)));
}

TEST_P(Sha256Test, TakesItsInputInPieces) {
  const std::string text(300'000, 'a');
  for (const std::size_t step : {1, 63, 64, 65, 127, 128, 1000}) {
    Sha256 hash(GetParam());
    for (std::size_t start = 0; start < text.size(); start += step)
      hash.update(std::string_view(text).substr(start, step));
    EXPECT_EQ(hash.finish(), digest_by_openssl(text)) << step;
  }
}

}  // namespace
}  // namespace belljar
