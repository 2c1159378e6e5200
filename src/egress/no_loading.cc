// OpenSSL could load engines with dlopen(3) and look names up by the system's resolver, which a static binary can't.
// The linker sends its calls here (CMakeLists.txt: --wrap), and so nothing is loaded and nothing asked.
#include <netdb.h>

// The names are the linker's: NOLINTBEGIN(readability-identifier-naming)
extern "C" {

void* __wrap_dlopen(const char*, int);
int __wrap_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**);
hostent* __wrap_gethostbyname(const char*);

void* __wrap_dlopen(const char*, int) {
  return nullptr;
}
int __wrap_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**) {
  return EAI_FAIL;
}
hostent* __wrap_gethostbyname(const char*) {
  return nullptr;
}
}
// NOLINTEND(readability-identifier-naming)
