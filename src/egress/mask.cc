#include "egress/mask.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "spec/secret_rule.h"

namespace belljar::egress {
namespace {

struct Found {
  std::size_t begin;
  std::size_t size;
};

// All places of all values, those that overlap too.
std::vector<Found> find_values(std::span<const std::string> values, std::string_view bytes) {
  std::vector<Found> found;
  for (const std::string& value : values) {
    std::size_t from = 0;
    while (from + value.size() <= bytes.size()) {
      const void* const place = ::memmem(bytes.data() + from, bytes.size() - from, value.data(), value.size());
      if (place == nullptr) break;
      const auto begin = static_cast<std::size_t>(static_cast<const char*>(place) - bytes.data());
      found.push_back({begin, value.size()});
      from = begin + 1;
    }
  }
  return found;
}

}  // namespace

// Where the longest end of the bytes begins that a value may go on from.
std::size_t Mask::keep_from(std::string_view bytes) const {
  std::size_t kept = 0;
  for (const std::string& value : values_) {
    for (std::size_t size = std::min(value.size() - 1, bytes.size()); size > kept; --size) {
      if (!bytes.ends_with(std::string_view(value).substr(0, size))) continue;
      kept = size;
      break;
    }
  }
  return bytes.size() - kept;
}

// What stands in place of each byte, for values that begin before `cut`; NUL where the byte itself does. Of values that
// overlap, the first goes first, so that it makes no difference in which pieces they come.
std::string Mask::cover(std::string_view bytes, std::size_t cut) const {
  std::vector<Found> found = find_values(values_, bytes);
  if (found.empty() && covered_.empty()) return {};
  std::ranges::sort(found, {}, &Found::begin);
  std::string over = covered_;
  over.resize(bytes.size());
  for (const Found& each : found) {
    if (each.begin >= cut) break;
    const std::string placeholder = secret_placeholder(each.size);
    for (std::size_t i = 0; i < each.size; ++i) {
      if (over[each.begin + i] == '\0') over[each.begin + i] = placeholder[i];
    }
  }
  return over;
}

void Mask::feed(std::string_view bytes, std::string* out) {
  if (values_.empty()) {
    out->append(bytes);
    return;
  }
  std::string joined;
  if (!kept_.empty()) {
    joined = kept_ + std::string(bytes);
    bytes = joined;
  }
  const std::size_t cut = keep_from(bytes);
  const std::string over = cover(bytes, cut);
  std::size_t end = cut;
  while (end < over.size() && over[end] != '\0') ++end;
  put(bytes.substr(0, end), over, out);
  kept_ = bytes.substr(cut);
  covered_ = over.substr(std::min(cut, over.size()));
  given_ = end - cut;
}

// Appends the bytes after those that went out already.
void Mask::put(std::string_view bytes, std::string_view over, std::string* out) const {
  const std::size_t start = out->size();
  out->append(bytes.substr(given_));
  for (std::size_t i = given_; i < std::min(bytes.size(), over.size()); ++i) {
    if (over[i] != '\0') (*out)[start + i - given_] = over[i];
  }
}

void Mask::finish(std::string* out) {
  put(kept_, cover(kept_, kept_.size()), out);
  kept_.clear();
  covered_.clear();
  given_ = 0;
}

std::string masked(std::span<const std::string> values, std::string_view text) {
  std::string out;
  Mask mask(values);
  mask.feed(text, &out);
  mask.finish(&out);
  return out;
}

}  // namespace belljar::egress
