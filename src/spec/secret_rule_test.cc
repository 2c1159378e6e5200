#include "spec/secret_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/errors.h"
#include "spec/policy.h"

namespace belljar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kPolicy = R"(
allow = ["api.example.org"]
[[secrets]]
name = "API_KEY"
source = "fd:7"
host = "api.example.org"
header = "X-Key: {}"
methods = ["GET"]
paths = ["/v1/*"]
plain_http = true
)";

std::string refusal(std::string_view text) {
  const auto rule = parse_secret_rule(text, "--secret");
  EXPECT_FALSE(rule) << text;
  if (rule) return "";
  EXPECT_EQ(rule.error().code, ErrorCode::bad_value);
  EXPECT_EQ(rule.error().message.find('\n'), std::string::npos);
  return rule.error().message;
}

TEST(SecretRule, IsReadFromTheFlag) {
  const auto rule = parse_secret_rule("API_KEY=file:a:b/key.txt@api.example.org:Authorization: Bearer {}", "x");
  ASSERT_TRUE(rule) << rule.error().message;
  EXPECT_EQ(rule->name, "API_KEY");
  EXPECT_EQ(rule->source, SecretSource::file);
  EXPECT_EQ(rule->from, "a:b/key.txt");
  EXPECT_EQ(rule->requests.host.text, "api.example.org");
  EXPECT_THAT(rule->requests.ports, ElementsAre(443));
  EXPECT_EQ(rule->header, "Authorization");
  EXPECT_EQ(rule->header_format, "Bearer {}");
  EXPECT_FALSE(rule->plain_http);
  const auto other = parse_secret_rule("K=env:K@API.example.org:8443,9443:X-Key:{}", "x");
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_THAT(other->requests.ports, ElementsAre(8443, 9443));
  EXPECT_EQ(other->header_format, "{}");
  const auto plain = parse_secret_rule("K=fd:3@http://api.example.org:X-Key: a{}@b", "x");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_TRUE(plain->plain_http);
  EXPECT_THAT(plain->requests.ports, ElementsAre(80, 443));
  EXPECT_EQ(plain->header_format, "a{}@b");
}

TEST(SecretRule, TakesAnyPath) {
  for (const std::string path : {"me@home/key.txt", "/mail/a@b.org:1/key", "@", "a@b@c@", "a=b@c", "@x.test:8443/key",
                                 "a@b.test:X Y: {}", "a:b:c"}) {
    for (const std::string rest : {"api.example.org:X-Key: a@{}", "http://api.example.org:X-Key: {}@b.test"}) {
      const auto rule = parse_secret_rule("K=file:" + path + "@" + rest, "x");
      ASSERT_TRUE(rule) << path << ": " << rule.error().message;
      EXPECT_EQ(rule->from, path);
      EXPECT_EQ(rule->requests.host.text, "api.example.org");
      EXPECT_EQ(rule->header, "X-Key");
    }
  }
  EXPECT_THAT(refusal("A=file:me@home/k@*.a.test:X: {}"), HasSubstr("for one host, by its name"));
  EXPECT_THAT(refusal("A=file:k@a.test:X Y: u@{}"), HasSubstr("is not the name of a header"));
  EXPECT_THAT(refusal("A=fd:3@b c@a.test:X: {}"), HasSubstr("neither a host name"));
}

TEST(SecretRule, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("API_KEY"), HasSubstr("NAME=SOURCE@HOST"));
  EXPECT_THAT(refusal("A=file:k"), HasSubstr("NAME=SOURCE@HOST"));
  EXPECT_THAT(refusal("=file:k@a.test:X: {}"), HasSubstr("name is empty"));
  EXPECT_THAT(refusal("A=file:@a.test:X: {}"), HasSubstr("the path is empty"));
  EXPECT_THAT(refusal("A=fd:x@a.test:X: {}"), HasSubstr("is not a descriptor"));
  EXPECT_THAT(refusal("A=env:@a.test:X: {}"), HasSubstr("name is empty"));
  EXPECT_THAT(refusal("A=file:k@a.test"), HasSubstr("and the header"));
  EXPECT_THAT(refusal("A=file:k@a.test:X"), HasSubstr("with {} for the value"));
  EXPECT_THAT(refusal("A=file:k@a.test:X: y"), HasSubstr("must have {} in it once"));
  EXPECT_THAT(refusal("A=file:k@a.test:X: {}{}"), HasSubstr("must have {} in it once"));
  EXPECT_THAT(refusal("A=file:k@a.test:X Y: {}"), HasSubstr("is not the name of a header"));
  EXPECT_THAT(refusal("A=file:k@a.test:X: {}\r\nY: z"), HasSubstr("must have {} in it once"));
  EXPECT_THAT(refusal("A=file:k@a.test:Host: {}"), HasSubstr("is not for secrets"));
  EXPECT_THAT(refusal("A=file:k@a.test:transfer-encoding: {}"), HasSubstr("is not for secrets"));
  EXPECT_THAT(refusal("A=file:k@*.a.test:X: {}"), HasSubstr("for one host, by its name"));
  EXPECT_THAT(refusal("A=file:k@203.0.113.7:X: {}"), HasSubstr("for one host, by its name"));
  EXPECT_THAT(refusal("A=file:k@https://a.test:X: {}"), HasSubstr("leave https:// out"));
  EXPECT_THAT(refusal("A=file:k@a.test:80:X: {}"), HasSubstr("plain_http = true"));
  EXPECT_THAT(refusal("A=file:k@a.test:0:X: {}"), HasSubstr("is not a port"));
  EXPECT_THAT(refusal("A=sk-12345678@a.test:X: {}"), AllOf(HasSubstr("file:PATH"), Not(HasSubstr("12345678"))));
  EXPECT_THAT(refusal("A=value:sk-12345678@a.test:X: {}"), AllOf(HasSubstr("file:PATH"), Not(HasSubstr("12345678"))));
}

TEST(SecretRule, HasANameOfItsOwn) {
  for (const std::string name : {"PATH", "HOME", "TZ", "TERM", "LD_PRELOAD", "LD_AUDIT", "LD_X", "SSL_CERT_FILE",
                                 "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "http_proxy", "HTTPS_PROXY", "PYTHONPATH",
                                 "PYTHONSTARTUP", "PERL5OPT", "BASH_ENV", "NODE_OPTIONS", "GLIBC_TUNABLES"}) {
    EXPECT_THAT(refusal(name + "=env:K@a.test:X: {}"), HasSubstr("the variable " + name + " is not for a secret"));
  }
  for (const std::string name : {"PATH_KEY", "path", "MY_LD_KEY", "LDX", "HOME_TOKEN", "OPENAI_API_KEY", "*"}) {
    EXPECT_TRUE(parse_secret_rule(name + "=env:PATH@a.test:X: {}", "x")) << name;
  }
}

TEST(SecretRule, NeedsARuleThatAllowsItsHost) {
  const std::vector<SecretRule> secrets = {*parse_secret_rule("K=env:K@api.example.org:X-Key: {}", "x")};
  const auto is_good = [&](std::string_view allowed) {
    return check_secret_rules(secrets, {*parse_egress_rule(allowed, "x")}, "secret").has_value();
  };
  EXPECT_TRUE(is_good("api.example.org"));
  EXPECT_TRUE(is_good("*.example.org"));
  EXPECT_FALSE(is_good("example.org"));
  EXPECT_FALSE(is_good("api.example.org:80"));
  const auto none = check_secret_rules(secrets, {}, "secret");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("add --allow api.example.org:443"));
}

TEST(SecretRule, StandsInPolicyFiles) {
  RunPolicy policy;
  const auto applied = apply_policy_text(policy, kPolicy, "p.toml");
  ASSERT_TRUE(applied) << applied.error().message;
  ASSERT_EQ(policy.spec().secrets.size(), 1U);
  const SecretRule& rule = policy.spec().secrets[0];
  EXPECT_EQ(rule.source, SecretSource::fd);
  EXPECT_EQ(rule.header_format, "{}");
  EXPECT_THAT(rule.requests.ports, ElementsAre(80, 443));
  EXPECT_THAT(rule.requests.paths, ElementsAre("/v1/*"));
  EXPECT_TRUE(rule.plain_http);
  const auto shown = policy_to_toml(policy);
  ASSERT_TRUE(shown);
  RunPolicy again;
  ASSERT_TRUE(apply_policy_text(again, *shown, "shown"));
  EXPECT_EQ(again.spec().secrets, policy.spec().secrets);
  // A later layer replaces, the same layer may not.
  EXPECT_TRUE(apply_policy_text(again, kPolicy, "p.toml"));
  EXPECT_EQ(again.spec().secrets.size(), 1U);
  EXPECT_FALSE(again.add_secret_text("API_KEY=env:K@api.example.org:X-Key: {}", "--secret"));
}

TEST(SecretRule, RefusesWrongPolicyFiles) {
  const auto wrong = [](std::string_view text) {
    RunPolicy policy;
    const auto applied = apply_policy_text(policy, text, "p.toml");
    return applied ? std::string() : applied.error().message;
  };
  constexpr std::string_view kStart = "[[secrets]]\nname = \"A\"\nsource = \"env:A\"\nheader = \"X: {}\"\n";
  EXPECT_THAT(wrong(kStart), HasSubstr("secrets.host: a secret must have it"));
  EXPECT_THAT(wrong(std::string(kStart) + "host = \"a.test\"\nport = [1]\n"), HasSubstr("did you mean ports?"));
  EXPECT_THAT(wrong(std::string(kStart) + "host = \"a.test\"\nplain_http = 1\n"), HasSubstr("true or false"));
  EXPECT_THAT(wrong("secrets = 1"), HasSubstr("[[secrets]]"));
  EXPECT_THAT(wrong("secrets = [\"A\"]"), HasSubstr("[[secrets]]"));
}

TEST(SecretRule, SharesNoHeaderOfARequest) {
  const auto refused = [](const std::string& one, const std::string& other) {
    RunPolicy policy;
    const std::string text =
        "allow = [\"a.test:80,443,8443\", \"b.test\"]\n[[secrets]]\nname = \"A\"\nsource = \"env:A\"\n" + one +
        "\n[[secrets]]\nname = \"B\"\nsource = \"env:B\"\n" + other;
    const auto applied = apply_policy_text(policy, text, "p.toml");
    EXPECT_TRUE(applied) << applied.error().message;
    const auto checked = check_secret_rules(policy.spec().secrets, policy.spec().allow, "secrets");
    return checked ? std::string() : checked.error().message;
  };
  const std::string plain = "host = \"a.test\"\nheader = \"X-Key: {}\"\n";
  const std::string lower = "host = \"a.test\"\nheader = \"x-key: b{}\"\n";
  EXPECT_THAT(refused(plain, lower), HasSubstr("A and B are both for the header x-key of requests to a.test"));
  EXPECT_EQ(refused(plain, "host = \"a.test\"\nheader = \"X-Other: {}\"\n"), "");
  EXPECT_EQ(refused(plain, "host = \"b.test\"\nheader = \"X-Key: {}\"\n"), "");
  EXPECT_EQ(refused(plain, lower + "ports = [8443]"), "");
  EXPECT_NE(refused(plain, lower + "ports = [443, 8443]"), "");
  EXPECT_EQ(refused(plain + "methods = [\"GET\"]", lower + "methods = [\"POST\", \"PUT\"]"), "");
  EXPECT_NE(refused(plain + "methods = [\"GET\"]", lower + "methods = [\"PUT\", \"GET\"]"), "");
  EXPECT_NE(refused(plain + "methods = [\"GET\"]", lower), "");
  EXPECT_EQ(refused(plain + "paths = [\"/a/*\"]", lower + "paths = [\"/a\", \"/b/*\"]"), "");
  EXPECT_NE(refused(plain + "paths = [\"/a/*\"]", lower + "paths = [\"/b\", \"/a/b/*\"]"), "");
  EXPECT_NE(refused(plain + "paths = [\"/a/b/*\"]", lower + "paths = [\"/a/*\"]"), "");
  EXPECT_NE(refused(plain + "paths = [\"/a/b\"]", lower + "paths = [\"/a/*\"]"), "");
  EXPECT_EQ(refused(plain + "paths = [\"/a/*\"]", lower + "paths = [\"/ab\", \"/a\"]"), "");
}

TEST(SecretRule, HasADescriptorOfItsOwn) {
  const auto refused = [](std::string_view one, std::string_view other) {
    const std::vector<SecretRule> secrets = {*parse_secret_rule(one, "x"), *parse_secret_rule(other, "x")};
    const auto checked = check_secret_rules(secrets, {*parse_egress_rule("a.test", "x")}, "secret");
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(refused("A=fd:3@a.test:X: {}", "B=fd:03@a.test:Y: {}"),
            "secret: A and B are both from descriptor 3, which can be read once; open another for one of them, such as "
            "4<key.txt");
  EXPECT_EQ(refused("A=fd:3@a.test:X: {}", "B=fd:4@a.test:Y: {}"), "");
  EXPECT_EQ(refused("A=file:3@a.test:X: {}", "B=file:3@a.test:Y: {}"), "");
  EXPECT_EQ(refused("A=fd:3@a.test:X: {}", "B=env:A@a.test:Y: {}"), "");
}

TEST(SecretPlaceholder, HasTheLength) {
  EXPECT_EQ(secret_placeholder(8), "belljar-");
  EXPECT_EQ(secret_placeholder(45).size(), 45U);
}

}  // namespace
}  // namespace belljar
