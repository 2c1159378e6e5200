#include "image/exposed_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace belljar {
namespace {

namespace fs = std::filesystem;

class ExposedSecretsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "exposed_secrets.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    ASSERT_EQ(::chmod(name.c_str(), 0755), 0);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text, mode_t mode = 0644) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
    ASSERT_EQ(::chmod((root_ / path).c_str(), mode), 0);
  }
  std::vector<std::string> found() {
    std::vector<std::string> names;
    for (const std::string& path : find_exposed_secrets(root_, std::chrono::minutes(1)).paths) {
      names.push_back(fs::path(path).lexically_relative(root_));
    }
    return names;
  }

  fs::path root_;
};

constexpr const char* kKey = "-----BEGIN RSA PRIVATE KEY-----\n";

TEST_F(ExposedSecretsTest, FindsWhatAnyoneCanRead) {
  write("app/.env", "TOKEN=x");
  write("app/server.key", kKey);
  write("app/both.pem", std::string(10'000, 'c') + kKey);
  write("ssh/id_ed25519", "x");
  write("credentials.json", "{}");
  EXPECT_THAT(found(),
              testing::ElementsAre("app/.env", "app/both.pem", "app/server.key", "credentials.json", "ssh/id_ed25519"));
}

TEST_F(ExposedSecretsTest, PassesOverWhatIsNoSecretOrIsClosed) {
  write("certs/ca.pem", "-----BEGIN CERTIFICATE-----\n");
  write("lib/credentials.py", "x");
  write("private.key", kKey, 0640);
  write("empty/.env", "");
  write("lib/python3/test/keycert.pem", kKey);
  write("closed/id_rsa", kKey);
  ASSERT_EQ(::chmod((root_ / "closed").c_str(), 0750), 0);
  fs::create_symlink("/etc/hostname", root_ / "id_rsa");
  ASSERT_EQ(::mkfifo((root_ / "fifo.key").c_str(), 0666), 0);
  EXPECT_THAT(found(), testing::IsEmpty());
}

TEST_F(ExposedSecretsTest, SaysWhenItStoppedEarly) {
  write("a/.env", "x");
  EXPECT_EQ(find_exposed_secrets(root_, std::chrono::milliseconds(0)).coverage, Coverage::partial);
  EXPECT_EQ(find_exposed_secrets(root_, std::chrono::minutes(1)).coverage, Coverage::whole);
  for (int i = 0; i < 60; ++i) write("many/" + std::to_string(i) + "/.env", "x");
  const ExposedSecrets secrets = find_exposed_secrets(root_, std::chrono::minutes(1));
  EXPECT_EQ(secrets.coverage, Coverage::partial);
  EXPECT_EQ(secrets.paths.size(), kExposedSecretsMax);
}

TEST_F(ExposedSecretsTest, AMissingFolderHoldsNothing) {
  EXPECT_THAT(find_exposed_secrets(root_ / "gone", std::chrono::minutes(1)).paths, testing::IsEmpty());
}

}  // namespace
}  // namespace belljar
