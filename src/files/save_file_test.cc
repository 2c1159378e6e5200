#include "files/save_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "base/sha256.h"
#include "files/test_folder.h"

namespace belljar {
namespace {

using testing::HasSubstr;

class SaveFileTest : public testing::Test {
 protected:
  std::expected<SavedFile, SaveFailure> save(const std::string& source, const std::string& name,
                                             ExistingFiles existing = ExistingFiles::keep, int cancel_fd = -1) {
    const Fd file(::open(from_.at(source).c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status{};
    EXPECT_EQ(::fstat(file.get(), &status), 0);
    FileSaver saver(cancel_fd);
    auto saved = saver.save(file.get(), status, to_.fd(), name, existing);
    for (const auto& entry : std::filesystem::directory_iterator(to_.path())) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".belljar-")) << "left: " << entry.path();
    }
    return saved;
  }
  std::string reason(const std::string& source, const std::string& name, ExistingFiles existing = ExistingFiles::keep) {
    const auto saved = save(source, name, existing);
    EXPECT_FALSE(saved);
    return saved ? "" : saved.error().reason;
  }

  const TestFolder from_;
  const TestFolder to_;
};

TEST_F(SaveFileTest, CopiesEveryByte) {
  std::string content;
  for (int i = 0; i < 700'000; ++i) content += static_cast<char>(i * 31 % 256);
  from_.write("a", content);
  from_.write("empty", "");
  const auto saved = save("a", "b");
  ASSERT_TRUE(saved);
  EXPECT_EQ(to_.read("b"), content);
  EXPECT_EQ(saved->sha256, sha256_of(content));
  EXPECT_EQ(saved->change, FileChange::added);
  EXPECT_EQ(save("empty", "c")->sha256, sha256_of(""));
  EXPECT_EQ(to_.read("c"), "");
}

TEST_F(SaveFileTest, KeepsHolesAndTheirDigest) {
  constexpr off_t kSize = 40 << 20;
  const Fd file(::open(from_.at("sparse").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  ASSERT_EQ(::pwrite(file.get(), "begin", 5, 0), 5);
  ASSERT_EQ(::pwrite(file.get(), "middle", 6, 20 << 20), 6);
  ASSERT_EQ(::ftruncate(file.get(), kSize), 0);
  const auto saved = save("sparse", "b");
  ASSERT_TRUE(saved);
  struct stat status{};
  ASSERT_EQ(::stat(to_.at("b").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, kSize);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
  EXPECT_EQ(saved->sha256, sha256_of(to_.read("b")));
  EXPECT_TRUE(to_.read("b") == from_.read("sparse"));
}

TEST_F(SaveFileTest, CopiesAFileThatIsOneHole) {
  ASSERT_EQ(::truncate((from_.write("hole", ""), from_.at("hole")).c_str(), 1 << 20), 0);
  const auto saved = save("hole", "b");
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->sha256, sha256_of(std::string(1 << 20, '\0')));
  EXPECT_EQ(to_.read("b").size(), 1u << 20);
}

TEST_F(SaveFileTest, GivesThePermissionsOfNewFiles) {
  const unsigned before = ::umask(027);
  from_.write("plain", "x");
  from_.write("program", "x");
  ASSERT_EQ(::chmod(from_.at("plain").c_str(), 0666), 0);
  ASSERT_EQ(::chmod(from_.at("program").c_str(), 06777), 0);
  EXPECT_TRUE(save("plain", "plain") && save("program", "program"));
  ::umask(before);
  struct stat status{};
  ASSERT_EQ(::stat(to_.at("plain").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
  ASSERT_EQ(::stat(to_.at("program").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0750u);
}

TEST_F(SaveFileTest, KeepsWhatIsThere) {
  from_.write("a", "new");
  to_.write("b", "old");
  EXPECT_THAT(reason("a", "b"), HasSubstr("there already"));
  EXPECT_EQ(to_.read("b"), "old");
}

TEST_F(SaveFileTest, ReplacesAFileWhereTold) {
  from_.write("a", "new");
  to_.write("b", "old");
  ASSERT_EQ(::link(to_.at("b").c_str(), from_.at("other name").c_str()), 0);
  const auto saved = save("a", "b", ExistingFiles::replace);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->change, FileChange::modified);
  EXPECT_EQ(to_.read("b"), "new");
  EXPECT_EQ(from_.read("other name"), "old");  // the name got another file; this one was not written to
  EXPECT_EQ(save("a", "c", ExistingFiles::replace)->change, FileChange::added);
}

TEST_F(SaveFileTest, NeverWritesThroughALinkOrReplacesOne) {
  from_.write("a", "new");
  from_.write("target", "untouched");
  to_.link(from_.at("target"), "link");
  to_.link(from_.at("missing"), "dangling");
  to_.make_folder("folder");
  ASSERT_EQ(::mkfifoat(to_.fd(), "pipe", 0600), 0);
  for (const ExistingFiles existing : {ExistingFiles::keep, ExistingFiles::replace}) {
    EXPECT_EQ(reason("a", "link", existing), "a symbolic link is in its place, and is never replaced");
    EXPECT_EQ(reason("a", "dangling", existing), "a symbolic link is in its place, and is never replaced");
    EXPECT_EQ(reason("a", "folder", existing), "a folder is in its place, and is never replaced");
    EXPECT_EQ(reason("a", "pipe", existing), "a named pipe is in its place, and is never replaced");
  }
  EXPECT_EQ(from_.read("target"), "untouched");
  EXPECT_FALSE(from_.has("missing"));
}

TEST_F(SaveFileTest, IsGoneWithTheProcessThatWasKilled) {
  from_.write("a", std::string(1 << 20, 'x'));
  to_.write("b", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit half{1 << 19, 1 << 19};
    ::setrlimit(RLIMIT_FSIZE, &half);  // SIGXFSZ kills it in the middle
    (void)save("a", "b", ExistingFiles::replace);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
  EXPECT_EQ(to_.read("b"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(to_.path()), {}), 1);
}

TEST_F(SaveFileTest, PassesOverWhatAKilledOneLeft) {
  from_.write("a", "new");
  to_.write("b", "old");
  const std::string left = ".belljar-" + std::to_string(::getpid()) + "-0.part";
  ASSERT_EQ(::symlinkat("/nonexistent", to_.fd(), left.c_str()), 0);
  FileSaver saver(-1);
  const Fd file(::open(from_.at("a").c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_TRUE(saver.save(file.get(), status, to_.fd(), "b", ExistingFiles::replace));
  EXPECT_EQ(to_.read("b"), "new");
}

TEST_F(SaveFileTest, LeavesNoPartOfAFileThatShrank) {
  from_.write("a", "0123456789");
  const Fd file(::open(from_.at("a").c_str(), O_RDWR | O_CLOEXEC));
  struct stat status{};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  ASSERT_EQ(::ftruncate(file.get(), 5), 0);
  FileSaver saver(-1);
  const auto saved = saver.save(file.get(), status, to_.fd(), "b", ExistingFiles::keep);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().reason, "it changed while it was read");
  EXPECT_FALSE(saved.error().concerns_all);
  EXPECT_TRUE(std::filesystem::is_empty(to_.path()));
}

TEST_F(SaveFileTest, StopsWhenTold) {
  const auto stop = make_pipe();
  ASSERT_TRUE(stop && write_all(stop->write.get(), "x"));
  from_.write("a", "new");
  const auto saved = save("a", "b", ExistingFiles::keep, stop->read.get());
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().reason, "stopped by the caller");
  EXPECT_TRUE(saved.error().concerns_all);
  EXPECT_TRUE(std::filesystem::is_empty(to_.path()));
}

TEST(SaveFailure, TellsWhatConcernsAll) {
  for (const int error : {ENOSPC, EDQUOT, EROFS, EIO}) EXPECT_TRUE(save_failure(error).concerns_all) << error;
  for (const int error : {EACCES, ENAMETOOLONG, EINVAL, EEXIST})
    EXPECT_FALSE(save_failure(error).concerns_all) << error;
}

}  // namespace
}  // namespace belljar
