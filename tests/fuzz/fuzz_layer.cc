// Layers as tar streams, packed or not: whatever they hold, only the tree's own folder changes, and only plain things
// are made in it.
#include <cstdint>

#include "image/archive_reader.h"
#include "image_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar;
  static const ImageFolder folder;
  if (size == 0) return 0;
  const auto whiteouts = (data[0] & 1) != 0 ? Whiteouts::applied : Whiteouts::literal;
  const auto place = (data[0] & 2) != 0 ? LayerPlace::upper : LayerPlace::first;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ByteSource source = [&rest]() -> Result<std::string_view> { return std::exchange(rest, std::string_view()); };
  const Fd root = folder.begin();
  {
    constexpr TreeLimits kLimits{.entries_max = 200, .bytes_max = 1 << 20};
    TreeWriter writer(root.get(), Ownership::caller, kLimits, place, {});
    if (unpack_layer(source, whiteouts, writer)) (void)writer.finish();
    if (writer.counts().entries > kLimits.entries_max || writer.counts().bytes > kLimits.bytes_max) std::abort();
  }
  folder.end();
  return 0;
}
