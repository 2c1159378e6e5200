// SQLite would load extensions with dlopen(3), which a static binary can't. The linker sends its calls here
// (CMakeLists.txt: --wrap), and so nothing is ever loaded.

// The names are the linker's: NOLINTBEGIN(readability-identifier-naming)
extern "C" {

void* __wrap_dlopen(const char*, int);
void* __wrap_dlsym(void*, const char*);
int __wrap_dlclose(void*);
char* __wrap_dlerror();

void* __wrap_dlopen(const char*, int) {
  return nullptr;
}
void* __wrap_dlsym(void*, const char*) {
  return nullptr;
}
int __wrap_dlclose(void*) {
  return -1;
}
char* __wrap_dlerror() {
  static char text[] = "nothing is loaded into this program";
  return text;
}
}
// NOLINTEND(readability-identifier-naming)
