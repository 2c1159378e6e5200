// Entries and whiteouts in any order, as upper layers have them, on names that meet often: only the tree's own folder
// changes.
#include <cstdint>

#include "image/tree_writer.h"
#include "image_folder.h"

namespace {

// A path of one to three names out of a few.
std::string path_of(std::uint8_t byte) {
  static constexpr const char* kNames[] = {"up", "d", "away", "a"};
  std::string path = kNames[byte & 3];
  for (unsigned left = (byte >> 2) & 3; left > 1; --left) path += std::string("/") + kNames[(byte >> (2 * left)) & 3];
  return path;
}

void apply(belljar::TreeWriter& writer, std::uint8_t operation, std::uint8_t where, std::uint8_t other) {
  using namespace belljar;
  const std::string path = path_of(where);
  switch (operation % 8) {
    case 0:
      (void)writer.remove(path);
      return;
    case 1:
      (void)writer.make_opaque(path);
      return;
    case 2:
      (void)writer.make_opaque("");
      return;
    default:
      break;
  }
  constexpr TreeEntry::Kind kKinds[] = {TreeEntry::Kind::folder, TreeEntry::Kind::file, TreeEntry::Kind::link,
                                        TreeEntry::Kind::hard_link, TreeEntry::Kind::special};
  TreeEntry entry{.kind = kKinds[operation % 8 - 3], .path = path, .mode = static_cast<mode_t>(other * 16)};
  if (entry.kind == TreeEntry::Kind::link) entry.target = (other & 1) != 0 ? "../outside" : "/";
  if (entry.kind == TreeEntry::Kind::hard_link) entry.target = path_of(other);
  if (entry.kind == TreeEntry::Kind::file) entry.size = 1;
  bool is_given = false;
  (void)writer.add(entry, [&]() -> Result<std::optional<ContentBlock>> {
    if (std::exchange(is_given, true)) return std::nullopt;
    return ContentBlock{"x", 0};
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar;
  static const ImageFolder folder;
  const Fd root = folder.begin();
  constexpr TreeLimits kLimits{.entries_max = 500, .bytes_max = 1 << 20};
  constexpr std::size_t kOperationsPerLayer = 8;
  TreeCounts counts;
  for (std::size_t at = 0; at + 3 <= std::min<std::size_t>(size, 300);) {
    TreeWriter writer(root.get(), Ownership::caller, kLimits, LayerPlace::upper, counts);
    for (std::size_t i = 0; i < kOperationsPerLayer && at + 3 <= size; ++i, at += 3) {
      apply(writer, data[at], data[at + 1], data[at + 2]);
    }
    (void)writer.finish();
    counts = writer.counts();
  }
  folder.end();
  return 0;
}
