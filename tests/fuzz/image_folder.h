// A folder for targets that unpack: root/ is where the tree goes, and beside it lies what must not change.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace belljar {

class ImageFolder {
 public:
  ImageFolder() {
    ::mkdtemp(path_.data());
    std::filesystem::create_directory(path_ + "/outside");
    const auto canary = open_at(AT_FDCWD, (path_ + "/outside/canary").c_str(), O_CREAT | O_WRONLY, 0600);
    if (!canary || !write_all(canary->get(), kCanary)) std::abort();
    before_ = look();
  }
  ImageFolder(const ImageFolder&) = delete;
  ImageFolder& operator=(const ImageFolder&) = delete;
  ~ImageFolder() { std::filesystem::remove_all(path_); }

  // An empty root. It gets links that lead out of it, as a lower layer may have them.
  Fd begin() const {
    std::filesystem::create_directories(path_ + "/root/d");
    std::filesystem::create_symlink("../outside", path_ + "/root/up");
    std::filesystem::create_symlink(path_ + "/outside", path_ + "/root/d/away");
    return std::move(*open_at(AT_FDCWD, (path_ + "/root").c_str(), O_PATH | O_DIRECTORY));
  }

  // Aborts where anything but the root was touched, or where the root holds what no tree may.
  void end() const {
    if (look() != before_ || read_file_at(AT_FDCWD, (path_ + "/outside/canary").c_str(), 100).value_or("") != kCanary) {
      std::abort();
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_ + "/root")) {
      struct stat status{};
      if (::lstat(entry.path().c_str(), &status) != 0) std::abort();
      const bool is_plain = S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISLNK(status.st_mode);
      if (!is_plain || (status.st_mode & (S_ISUID | S_ISGID)) != 0) std::abort();
    }
    std::filesystem::remove_all(path_ + "/root");
  }

 private:
  static constexpr std::string_view kCanary = "canary";

  // Of what lies outside: names, and what would show a change.
  std::string look() const {
    std::string seen;
    for (const char* const name : {"", "/outside", "/outside/canary"}) {
      struct stat status{};
      if (::lstat((path_ + name).c_str(), &status) != 0) std::abort();
      seen += std::to_string(status.st_mode) + " " + std::to_string(status.st_uid) + " ";
      if (*name != '\0') seen += std::to_string(status.st_mtim.tv_nsec) + " " + std::to_string(status.st_nlink) + " ";
    }
    for (const char* const folder : {"", "/outside"}) {
      for (const auto& entry : std::filesystem::directory_iterator(path_ + folder)) {
        if (entry.path().filename() != "root") seen += entry.path().string() + "\n";
      }
    }
    return seen;
  }

  std::string path_ = "/tmp/belljar-fuzz-XXXXXX";
  std::string before_;
};

}  // namespace belljar
