#include "host/own_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

namespace belljar::host {

SysResult<OwnFile> open_own_program(std::string_view name) {
  std::array<char, PATH_MAX> own{};
  const ssize_t length = ::readlink("/proc/self/exe", own.data(), own.size() - 1);
  const std::string_view path(own.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::string folder(path.substr(0, path.rfind('/') + 1));
  for (const char* const place : {"", "../libexec/belljar/", BELLJAR_LIBEXEC "/"}) {
    std::string file = place[0] == '/' ? std::string(place) : folder + place;
    file += name;
    auto opened = open_at(AT_FDCWD, file.c_str(), O_PATH);
    if (opened) return OwnFile{std::move(*opened), std::move(file)};
  }
  return std::unexpected(Errno{ENOENT});
}

std::string own_program_places() {
  return std::string("neither beside this one nor in ") + BELLJAR_LIBEXEC;
}

}  // namespace belljar::host
