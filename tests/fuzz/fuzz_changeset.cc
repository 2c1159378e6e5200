// Kept changes as JSON: nothing unsound is taken, and what is taken comes back as it was.
#include <cstdint>
#include <cstdlib>

#include "files/changeset.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto changeset = belljar::read_changeset({reinterpret_cast<const char*>(data), size});
  if (!changeset) return 0;
  for (const belljar::Change& change : changeset->changes) {
    const std::string guarded = "/" + change.path + "/";
    for (const char* const bad : {"//", "/./", "/../"}) {
      if (guarded.find(bad) != std::string::npos) std::abort();
    }
    if (change.sha256.find('/') != std::string::npos) std::abort();
  }
  const auto again = belljar::read_changeset(belljar::changeset_to_json(*changeset));
  if (!again || *again != *changeset) std::abort();
  return 0;
}
