// For tests of commands: what a call writes and returns.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace belljar {

struct Said {
  int status;
  std::string out;
  std::string err;
};

// Calls `command` with these arguments, as main() does.
inline Said say_to(int (*command)(std::span<char* const>), std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = command(pointers);
  std::string out = testing::internal::GetCapturedStdout();
  return {status, std::move(out), testing::internal::GetCapturedStderr()};
}

}  // namespace belljar
