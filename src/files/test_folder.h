// A temporary folder for tests, removed with everything in it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace belljar {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = testing::TempDir() + "belljar_files_XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    fd_ = Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() { std::filesystem::remove_all(path_); }

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  std::string at(std::string_view name) const { return path_ + "/" + std::string(name); }

  void write(const std::string& name, std::string_view content, unsigned mode = 0644) const {
    const auto file = open_at(fd(), name.c_str(), O_CREAT | O_TRUNC | O_WRONLY, mode);
    ASSERT_TRUE(file && write_all(file->get(), content)) << name;
  }
  void make_folder(const std::string& name) const {
    ASSERT_TRUE(std::filesystem::create_directories(at(name))) << name;
  }
  void link(const std::string& target, const std::string& name) const {
    ASSERT_EQ(::symlinkat(target.c_str(), fd(), name.c_str()), 0) << name;
  }

  // What the file holds, or "" and a failure.
  std::string read(const std::string& name) const {
    const auto content = read_file_at(fd(), name.c_str(), std::size_t{64} << 20);
    EXPECT_TRUE(content) << name;
    return content.value_or("");
  }
  bool has(const std::string& name) const { return ::faccessat(fd(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0; }

 private:
  std::string path_;
  Fd fd_;
};

}  // namespace belljar
