#include "host/own_program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

namespace belljar::host {
namespace {

// Whether nobody can have put this here, or changed it, who could not have changed the running program itself.
bool is_as_safe_as(const struct stat& program, const struct stat& found) {
  const bool is_owner_trusted = found.st_uid == 0 || found.st_uid == program.st_uid || found.st_uid == ::geteuid();
  const bool is_group_trusted =
      (found.st_mode & S_IWGRP) == 0 || (found.st_gid == program.st_gid && (program.st_mode & S_IWGRP) != 0);
  return is_owner_trusted && is_group_trusted && (found.st_mode & S_IWOTH) == 0;
}

bool is_safe(const struct stat& program, int fd) {
  struct stat found{};
  return ::fstat(fd, &found) == 0 && is_as_safe_as(program, found);
}

// The folder first, and the file in it: what is checked is what is opened.
SysResult<OwnFile> open_in(const std::string& folder, std::string_view name, const struct stat& program) {
  const Fd place = TRY(open_at(AT_FDCWD, folder.c_str(), O_PATH | O_DIRECTORY));
  const std::string file(name);
  Fd opened = TRY(open_at(place.get(), file.c_str(), O_PATH | O_NOFOLLOW));
  if (!is_safe(program, place.get()) || !is_safe(program, opened.get())) return std::unexpected(Errno{EPERM});
  return OwnFile{std::move(opened), folder + file};
}

}  // namespace

SysResult<OwnFile> open_own_program(std::string_view name) {
  constexpr const char* kSelf = "/proc/self/exe";
  std::array<char, PATH_MAX> own{};
  const ssize_t length = ::readlink(kSelf, own.data(), own.size() - 1);
  const std::string_view path(own.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::string beside(path.substr(0, path.rfind('/') + 1));
  struct stat program{};
  if (beside.empty() || ::stat(kSelf, &program) != 0) return std::unexpected(Errno{ENOENT});
  // A program of another project that has this as a library lies anywhere: then Belljar is where it gets installed.
  const std::string places[] = {beside, beside + "../libexec/belljar/", std::string(BELLJAR_LIBEXEC) + "/",
                                "/usr/libexec/belljar/", "/usr/local/libexec/belljar/"};
  Errno why{ENOENT};
  for (const std::string& place : places) {
    auto opened = open_in(place, name, program);
    if (opened) return opened;
    if (opened.error().value != ENOENT) why = opened.error();
  }
  return std::unexpected(why);
}

std::string own_program_places() {
  return std::string("neither beside this one nor in ") + BELLJAR_LIBEXEC +
         ", /usr/libexec/belljar or /usr/local/libexec/belljar, or others could write it there";
}

}  // namespace belljar::host
