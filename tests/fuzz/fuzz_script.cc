// Any text as the name and the first bytes of a script: what is chosen can be handed to execve(2), and an error is one
// line that a terminal shows as it is.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "spec/errors.h"
#include "spec/interpreter.h"

// The name ends at the first NUL byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view name = text.substr(0, text.find('\0'));
  const std::string_view head =
      text.substr(std::min(name.size() + 1, text.size())).substr(0, belljar::kScriptHeadBytes);
  const auto prefix = belljar::choose_interpreter(name, head);
  if (!prefix) {
    if (prefix.error().code != belljar::ErrorCode::bad_script) std::abort();
    if (prefix.error().message != belljar::one_line(prefix.error().message, SIZE_MAX)) std::abort();
    return 0;
  }
  if (prefix->empty() || prefix->size() > 2) std::abort();
  for (const std::string& argument : *prefix) {
    if (argument.empty() || argument.find_first_of(std::string_view("\0\n", 2)) != std::string::npos) std::abort();
  }
  return 0;
}
