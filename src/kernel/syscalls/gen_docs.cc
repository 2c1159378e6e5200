// Writes the reference page of the system calls, or says whether it is stale:
//   belljar_syscall_docs write|check docs/generated/syscalls.md
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace {

std::string row(std::string_view name, std::string_view number, std::string_view what, std::string_view note,
                std::string_view page) {
  std::string text = "| ";
  for (const std::string_view cell : {name, number, what, note, page}) {
    text += cell;
    text += " | ";
  }
  text.back() = '\n';
  return text;
}

std::string make_page() {
  std::string page =
      "# System calls of the kernel tier\n\n"
      "Generated from `src/kernel/syscalls/syscalls.def`; don't edit (`ninja syscall_docs` writes it anew).\n\n"
      "What the user-space kernel does with each call. A call that is not listed answers ENOSYS, as a kernel that does "
      "not\n"
      "know it.\n\n"
      "| call | number | support | what to know | manual page |\n| --- | --- | --- | --- | --- |\n";
#define SYSCALL(number, name, support, note, manual) page += row("`" #name "`", #number, #support, note, manual);
#define REFUSED(number, name, errno_value, note, manual)
#include "kernel/syscalls/syscalls.def"
#undef SYSCALL
#undef REFUSED
  page +=
      "\n## Refused\n\n"
      "| call | number | answer | why | manual page |\n| --- | --- | --- | --- | --- |\n";
#define SYSCALL(number, name, support, note, manual)
#define REFUSED(number, name, errno_value, note, manual) \
  page += row("`" #name "`", #number, #errno_value, note, manual);
#include "kernel/syscalls/syscalls.def"
#undef SYSCALL
#undef REFUSED
  return page;
}

std::string read_file(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view command = count == 3 ? arguments[1] : "";
  if (command == "write") {
    std::ofstream file(arguments[2], std::ios::binary);
    file << make_page();
    return file.good() ? 0 : 1;
  }
  if (command == "check") {
    if (read_file(arguments[2]) == make_page()) return 0;
    std::fprintf(stderr, "%s is stale: run ninja syscall_docs\n", arguments[2]);
    return 1;
  }
  std::fprintf(stderr, "usage: belljar_syscall_docs write|check PAGE\n");
  return 2;
}
