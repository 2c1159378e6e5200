// Fuzzes HTTP answers: however the bytes come in pieces, the same goes on, the same is refused, and no value is in it.
// The first byte says what was asked.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "egress/http_answers.h"

namespace {

using namespace belljar::egress;

const std::vector<std::string> kValues = {"secret-value", "value-of-two"};

struct Went {
  bool is_good = true;
  bool is_whole = false;
  std::string out;
};

// Where the bytes end inside chunks, their sizes may differ: so the framing is left out.
std::string without_framing(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != '\r' && c != '\n' && (c < '0' || c > '9') && (c < 'a' || c > 'f')) out += c;
  }
  return out;
}

Went filter(std::string_view bytes, unsigned asked, std::size_t step) {
  AnswerFilter answers(kValues);
  for (unsigned i = 0; i < asked % 4; ++i) answers.expect((asked & 4U) != 0 ? "HEAD" : "GET", false);
  Went went;
  for (std::size_t at = 0; at < bytes.size() && went.is_good; at += step) {
    went.is_good = answers.feed(bytes.substr(at, step), &went.out);
  }
  went.is_whole = went.is_good && answers.finish(&went.out);
  return went;
}

bool has_value(const std::string& text) {
  return std::ranges::any_of(kValues, [&](const std::string& value) { return text.find(value) != std::string::npos; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Went whole = filter(bytes, data[0] & 7U, bytes.size() + 1);
  for (const std::size_t step : {1, 2, 3, 5, 17, 64}) {
    const Went pieces = filter(bytes, data[0] & 7U, step);
    if (whole.is_good != pieces.is_good || whole.is_whole != pieces.is_whole) std::abort();
    if (without_framing(whole.out) != without_framing(pieces.out) || has_value(pieces.out)) std::abort();
  }
  if (has_value(whole.out)) std::abort();
  return 0;
}
