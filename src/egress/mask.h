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

  // Appends what is certain by now; the beginning of a value at the end of the bytes is kept until more comes.
  void feed(std::string_view bytes, std::string* out);

  // Appends what was kept: no more comes.
  void finish(std::string* out);

 private:
  std::string cover(std::string_view bytes, std::size_t cut) const;
  std::size_t keep_from(std::string_view bytes) const;

  std::span<const std::string> values_;
  std::string kept_;     // as it came
  std::string covered_;  // what stands in place of its bytes; NUL where they do themselves
};

std::string masked(std::span<const std::string> values, std::string_view text);

}  // namespace belljar::egress
