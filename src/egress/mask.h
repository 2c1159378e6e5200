// Puts placeholders over values in a stream of bytes, also where a value comes in pieces. Lengths stay as they are.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace belljar::egress {

class Mask {
 public:
  // `values` outlive it.
  explicit Mask(std::span<const std::string> values) : values_(values) {}

  // Appends all that is certain by now, and no less: only bytes that a value may begin with, and what comes after them,
  // wait for more. How the bytes are cut makes no difference.
  void feed(std::string_view bytes, std::string* out);

  // Appends what was kept: no more comes.
  void finish(std::string* out);

 private:
  std::string cover(std::string_view bytes, std::size_t cut) const;
  std::size_t keep_from(std::string_view bytes) const;
  void put(std::string_view bytes, std::string_view over, std::string* out) const;

  std::span<const std::string> values_;
  std::string kept_;       // as it came: the longest end of the bytes that a value may begin with
  std::string covered_;    // what stands in place of its bytes; NUL where they do themselves
  std::size_t given_ = 0;  // of its bytes that went out already: covered, whatever comes
};

std::string masked(std::span<const std::string> values, std::string_view text);

}  // namespace belljar::egress
