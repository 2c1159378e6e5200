// What the confined processes of a load do, and the reports (JSON) that they hand back. ..._child() run in the child
// and return a report; read_..._report() check one in the parent. A report is hostile where the child was taken over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/archive_reader.h"
#include "image/confined.h"
#include "image/image_record.h"
#include "image/image_user.h"
#include "image/tree_writer.h"

namespace belljar {

// Unpacking a layer, or copying a folder, into the folder "root" of ConfinedPlaces::folder_fd.
struct UnpackReport {
  std::string diff_id;  // 64 hexadecimal digits; empty for a layer that was not packed: then it is the layer's digest
  TreeCounts counts;
};
std::string unpack_layer_child(int input_fd, const ConfinedPlaces& places, Whiteouts whiteouts, LayerPlace place,
                               Ownership ownership, const TreeLimits& limits, const TreeCounts& counts);
std::string copy_folder_child(const ConfinedPlaces& places, Ownership ownership, const TreeLimits& limits);
Result<UnpackReport> read_unpack_report(std::string_view report);

std::string list_archive_child(int input_fd);
Result<ArchiveListing> read_listing_report(std::string_view report);

// Unpacks into a new file of that name.
std::string expand_archive_child(int input_fd, int folder_fd, std::string_view name, std::uint64_t bytes_max);
Result<void> read_plain_report(std::string_view report);

// A look at a whole tree, whose root `root_fd` is. With FolderAccess::read_write it also gets an /etc/hosts, if it has
// an /etc and none in it, and the working folder of `config`, if it lacks that.
struct TreeDescription {
  std::vector<ImagePart> parts;
  UserIds user;
};
std::string describe_tree_child(int root_fd, FolderAccess access, const ImageConfig& config);
Result<TreeDescription> read_description_report(std::string_view report);

}  // namespace belljar
