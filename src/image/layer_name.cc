#include "image/layer_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";
constexpr std::string_view kAufsMarks[] = {".wh..wh.aufs", ".wh..wh.orph", ".wh..wh.plnk"};  // at the root of a layer

std::unexpected<Error> refuse(std::string_view written, std::string_view why) {
  return fail(ErrorCode::bad_image, fmt::format("entry {}: {}", quote(written), why));
}

Result<std::string> normal_path(std::string_view written) {
  if (written.size() > kEntryPathBytesMax) {
    return refuse(written, fmt::format("the name is longer than {} bytes", kEntryPathBytesMax));
  }
  if (written.find('\0') != std::string_view::npos) return refuse(written, "there is a NUL byte in the name");
  std::string path;
  std::size_t depth = 0;
  for (std::string_view rest = written; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse(written, "a name with .. in it would lead out of the image");
    if (part.size() > kEntryNameBytesMax) {
      return refuse(written, fmt::format("a part of the name is longer than {} bytes", kEntryNameBytesMax));
    }
    if (++depth > kEntryDepthMax)
      return refuse(written, fmt::format("the name has more than {} parts", kEntryDepthMax));
    if (!path.empty()) path += '/';
    path += part;
  }
  return path;
}

// Whiteouts and other marks: the names that begin with ".wh.".
Result<LayerName> read_mark(std::string_view written, std::string path) {
  using Kind = LayerName::Kind;
  const std::string_view first = std::string_view(path).substr(0, path.find('/'));
  if (std::ranges::find(kAufsMarks, first) != std::end(kAufsMarks)) return LayerName{Kind::ignored, ""};
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (first.starts_with(kWhiteout) && !folder.empty()) return refuse(written, "something lies below a whiteout");
  if (folder.find("/.wh.") != std::string::npos) return refuse(written, "something lies below a whiteout");
  if (!name.starts_with(kWhiteout)) return LayerName{Kind::entry, std::move(path)};
  if (name == kOpaque) return LayerName{Kind::opaque, folder};
  const std::string removed = name.substr(kWhiteout.size());
  if (removed.empty() || removed == "." || removed == ".." || removed.starts_with(kWhiteout)) {
    return refuse(written, "a whiteout must name what it removes, as .wh.NAME");
  }
  return LayerName{Kind::whiteout, folder.empty() ? removed : folder + '/' + removed};
}

}  // namespace

Result<LayerName> read_layer_name(std::string_view written, Whiteouts whiteouts) {
  std::string path = TRY(normal_path(written));
  if (path.empty()) return LayerName{LayerName::Kind::root, ""};
  if (whiteouts == Whiteouts::applied) return read_mark(written, std::move(path));
  return LayerName{LayerName::Kind::entry, std::move(path)};
}

}  // namespace belljar
