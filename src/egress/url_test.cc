#include "egress/url.h"

#include <gtest/gtest.h>

namespace belljar::egress {
namespace {

TEST(Url, TakesPlainOnes) {
  const auto url = parse_url("https://API.example.org/v1/items?q=1");
  ASSERT_TRUE(url);
  EXPECT_TRUE(url->is_tls);
  EXPECT_EQ(url->host.text, "api.example.org");
  EXPECT_EQ(url->port, 443U);
  EXPECT_EQ(url->target, "/v1/items?q=1");
  EXPECT_EQ(path_of_target(url->target), "/v1/items");
  EXPECT_EQ(parse_url("http://example.org:8080")->target, "/");
  EXPECT_EQ(parse_url("http://example.org:8080")->port, 8080U);
  EXPECT_EQ(parse_url("http://[2001:db8::7]/x")->host.text, "2001:db8::7");
}

TEST(Url, RefusesWhatCouldMeanAnotherPlace) {
  for (const char* text :
       {"", "example.org", "ftp://example.org/", "HTTP://example.org/", "https://allowed.example@evil.test/",
        "https://example.org:443:80/", "https://example.org\\@evil.test/", "https://example.org/a b",
        "https://example.org/#x", "https://example.org?x", "https:///x", "https://127.1/", "https://example.org./",
        "https://example.org/\x01", "https://example.org:0/"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
}

}  // namespace
}  // namespace belljar::egress
