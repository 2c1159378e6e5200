#include "egress/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"

namespace belljar::egress {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const Host kHost{"api.example.org", std::nullopt};
const Host kOther{"www.example.org", std::nullopt};

Secrets make() {
  Secrets secrets;
  SecretRule first = *parse_secret_rule("A=fd:0@api.example.org:Authorization: Bearer {}", "x");
  first.requests.methods = {"GET"};
  first.requests.paths = {"/v1/*"};
  secrets.add(first, "value-of-a");
  secrets.add(*parse_secret_rule("B=fd:0@http://api.example.org:8080:X-Key: {}", "x"), "value-of-b");
  return secrets;
}

Result<std::string> read_value(std::string_view bytes) {
  auto pipe = make_pipe();
  EXPECT_TRUE(pipe && write_all(pipe->write.get(), bytes));
  pipe->write.reset();
  return read_secret_value(pipe->read.get(), "KEY");
}

TEST(Secrets, GoIntoTheirRequestsOnly) {
  const Secrets secrets = make();
  const auto headers = secrets.headers_of(kHost, 443, Transport::tls, {"GET", "/v1/x"});
  ASSERT_EQ(headers.size(), 1U);
  EXPECT_EQ(headers[0].name, "authorization");
  EXPECT_EQ(headers[0].value, "Bearer value-of-a");
  EXPECT_THAT(secrets.headers_of(kOther, 443, Transport::tls, {"GET", "/v1/x"}), IsEmpty());
  EXPECT_THAT(secrets.headers_of(kHost, 8443, Transport::tls, {"GET", "/v1/x"}), IsEmpty());
  EXPECT_THAT(secrets.headers_of(kHost, 443, Transport::plain, {"GET", "/v1/x"}), IsEmpty());
  EXPECT_THAT(secrets.headers_of(kHost, 443, Transport::tls, {"POST", "/v1/x"}), IsEmpty());
  EXPECT_THAT(secrets.headers_of(kHost, 443, Transport::tls, {"GET", "/v2/x"}), IsEmpty());
  EXPECT_THAT(secrets.headers_of(kHost, 443, Transport::tls, {"GET", "/v1/../v2"}), IsEmpty());
  EXPECT_EQ(secrets.headers_of(kHost, 8080, Transport::plain, {"PUT", "/"}).size(), 1U);
  EXPECT_TRUE(secrets.are_for(kHost, 443, Transport::tls));
  EXPECT_FALSE(secrets.are_for(kHost, 443, Transport::plain));
  EXPECT_TRUE(secrets.are_for(kHost, 8080, Transport::plain));
  EXPECT_FALSE(secrets.are_for(kOther, 443, Transport::tls));
}

TEST(Secrets, SeePlaceholdersWhereTlsIsMissing) {
  const Secrets secrets = make();
  const std::string placeholder = secret_placeholder(10);
  const std::string value = "Bearer " + placeholder;
  const std::vector<HttpHeader> with = {{"AUTHORIZATION", value}};
  const std::vector<HttpHeader> without = {{"Authorization", "Bearer own"}, {"X-Key", placeholder}};
  ASSERT_NE(secrets.only_by_tls(kHost, with), nullptr);
  EXPECT_EQ(secrets.only_by_tls(kHost, with)->name, "A");
  EXPECT_EQ(secrets.only_by_tls(kHost, without), nullptr);
  EXPECT_EQ(secrets.only_by_tls(kOther, with), nullptr);
}

TEST(SecretValue, IsReadWithoutItsLineEnd) {
  EXPECT_EQ(*read_value("sk-12345678"), "sk-12345678");
  EXPECT_EQ(*read_value("sk-12345678\r\n"), "sk-12345678");
  EXPECT_EQ(read_value(std::string(kSecretBytesMax, 'x') + "\n")->size(), kSecretBytesMax);
}

TEST(SecretValue, IsRefusedWithoutBeingShown) {
  for (const std::string& bytes :
       {std::string(), std::string("sk-1234"), std::string("sk-12345678\n\n"), std::string("sk-1\r\nX: 2345"),
        std::string("sk-12345\0", 9), std::string(" sk-12345678"), std::string("sk-\xc3\xa4-12345678"),
        std::string(kSecretBytesMax + 1, 's')}) {
    const auto value = read_value(bytes);
    ASSERT_FALSE(value);
    EXPECT_THAT(value.error().message,
                AllOf(HasSubstr("the secret KEY: "), Not(HasSubstr("sk-")), Not(HasSubstr("sss"))));
  }
}

}  // namespace
}  // namespace belljar::egress
