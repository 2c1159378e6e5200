#include "spec/interpreter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "spec/errors.h"

namespace belljar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> chosen(std::string_view name, std::string_view head) {
  const auto prefix = choose_interpreter(name, head);
  EXPECT_TRUE(prefix) << (prefix ? "" : prefix.error().message);
  return prefix.value_or(std::vector<std::string>{});
}

std::string refusal(std::string_view name, std::string_view head) {
  const auto prefix = choose_interpreter(name, head);
  EXPECT_FALSE(prefix) << name;
  if (prefix) return "";
  EXPECT_EQ(prefix.error().code, ErrorCode::bad_script);
  EXPECT_EQ(prefix.error().message.find('\n'), std::string::npos);
  return prefix.error().message;
}

TEST(Interpreter, GoesByTheExtension) {
  EXPECT_THAT(chosen("a.py", ""), ElementsAre("python3"));
  EXPECT_THAT(chosen("/x/y/a.py", "print(1)\r\n"), ElementsAre("python3"));
  EXPECT_THAT(chosen("a.sh", "echo\n"), ElementsAre("bash"));
  EXPECT_THAT(chosen("a.js", ""), ElementsAre("node"));
  EXPECT_THAT(chosen("a.pl", ""), ElementsAre("perl"));
  EXPECT_THAT(chosen("a.py", "#!/usr/bin/ruby\n"), ElementsAre("python3"));
}

TEST(Interpreter, GoesByTheHashBangLine) {
  EXPECT_THAT(chosen("tool", "#!/bin/sh\necho"), ElementsAre("/bin/sh"));
  EXPECT_THAT(chosen("tool", "#! /usr/bin/env  python3 \nx"), ElementsAre("/usr/bin/env", "python3"));
  EXPECT_THAT(chosen("tool", "#!/usr/bin/env -S python3 -u\n"), ElementsAre("/usr/bin/env", "-S python3 -u"));
  EXPECT_THAT(chosen("a.txt", "#!/bin/cat"), ElementsAre("/bin/cat"));
  EXPECT_THAT(chosen("dir.py/tool", "#!/bin/sh\n"), ElementsAre("/bin/sh"));
  EXPECT_THAT(chosen("tool", "#!/bin/sh\n" + std::string(246, 'x')), ElementsAre("/bin/sh"));
}

TEST(Interpreter, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("tool", ""), HasSubstr("is empty"));
  EXPECT_THAT(refusal("tool", "echo hi\n"), HasSubstr("no #! line"));
  EXPECT_THAT(refusal("tool", "echo hi\n"), HasSubstr(".py"));
  EXPECT_THAT(refusal("tool", "#!\n"), HasSubstr("names no interpreter"));
  EXPECT_THAT(refusal("tool", "#!"), HasSubstr("names no interpreter"));
  EXPECT_THAT(refusal("tool", "#!   "), HasSubstr("names no interpreter"));
  EXPECT_THAT(refusal("tool", "#!python3\n"), HasSubstr("/usr/bin/env python3"));
  EXPECT_THAT(refusal("tool", "#!/bin/sh\r\necho\r\n"), HasSubstr("carriage return"));
  EXPECT_THAT(refusal("tool", "#!/bin/" + std::string(300, 'x')), HasSubstr("longer than 255"));
  EXPECT_THAT(refusal("tool", std::string_view("#!/bin/\0sh\n", 11)), HasSubstr("NUL"));
  EXPECT_THAT(refusal("tool", "\xEF\xBB\xBF#!/bin/sh\n"), HasSubstr("byte order mark"));
  EXPECT_THAT(refusal("a.sh", "echo a\r\n"), HasSubstr("Windows line ends"));
  EXPECT_THAT(refusal("bin/prog",
                      "\x7F"
                      "ELF\x02"),
              HasSubstr("belljar run --mount bin/prog:/data/prog -- /data/prog"));
  EXPECT_THAT(refusal("prog.py",
                      "\x7F"
                      "ELF\x02"),
              HasSubstr("compiled program"));
  EXPECT_THAT(refusal("\x1b]0;x", "hi"), HasSubstr("\\x1b]0;x: "));
}

TEST(Interpreter, ADescriptorHasTheNameOfItsFile) {
  const auto name_of = [](int fd, const char* folder = "/proc/self/fd") {
    return script_name(fmt::format("{}/{}", folder, fd));
  };
  const Fd memory(::memfd_create("main.py", MFD_CLOEXEC));
  EXPECT_EQ(name_of(memory.get()), "main.py");
  EXPECT_EQ(name_of(memory.get(), "/dev/fd"), "main.py");
  const Fd unnamed(::memfd_create("", MFD_CLOEXEC));
  EXPECT_EQ(name_of(unnamed.get()), fmt::format("/proc/self/fd/{}", unnamed.get()));
  const Fd file(::open("/usr/bin/env", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(name_of(file.get()), "/usr/bin/env");
  for (const char* const path : {"a/b.py", "/proc/self/fd/999999", "/proc/self/fd/x", "/proc/1/fd/3", ""}) {
    EXPECT_EQ(script_name(path), path);
  }
}

TEST(Interpreter, CanBeWhatTheScriptSays) {
  const auto chosen = [](std::string_view name, std::string_view head) {
    return choose_interpreter(name, head, ScriptRule::hash_bang_first).value_or(std::vector<std::string>{});
  };
  EXPECT_EQ(chosen("a.sh", "#!/bin/sh\n"), std::vector<std::string>{"/bin/sh"});
  EXPECT_EQ(chosen("a.sh", "echo\n"), std::vector<std::string>{"bash"});
  EXPECT_EQ(choose_interpreter("a.sh", "#!/bin/sh\n").value_or(std::vector<std::string>{}),
            std::vector<std::string>{"bash"});
}

}  // namespace
}  // namespace belljar
