// The images that were loaded, on disk. Layout of the store's folder, which belongs to the caller and nobody else can
// enter:
//
//   names/NAME       a record (image_record.h): the configuration of the image, and which tree it has
//   paths/DEV-INODE  the same for images that are named by the path that they come from
//   trees/ID/root    an unpacked tree, never changed once it is here; ID follows from the digests of its layers
//   trees/ID/facts.json   TreeFacts
//   building/...     trees on their way in or out
//   lock             held while names or trees change hands
//   load.lock        held while something is unpacked: what is in building/ then belongs to nobody else
//
// A tree arrives by rename(2), whole and on the disk. A sandbox that uses one holds a shared flock(2) on its folder,
// and one on the record by which it found it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "image/image_record.h"

namespace belljar {

// $BELLJAR_IMAGES, else /var/lib/belljar/images for root, else $XDG_DATA_HOME/belljar/images or
// ~/.local/share/belljar/images. Errors: host_unsupported (no such place can be named).
Result<std::string> image_store_folder();

// Tells one state of a file from all others, by inode, size and times. Errors: bad_image, when there is no such file,
// or when it is a folder that is no OCI layout.
struct SourceIdentity {
  std::string key;    // "DEV-INODE"
  std::string state;  // of the file
};
Result<SourceIdentity> source_identity(const std::string& path);

// An image, ready to be a sandbox's system.
struct LoadedImage {
  ImageRecord record;
  Fd root;                // O_PATH, the tree
  std::string root_path;  // the same as a path, for tiers that must open it again
  Fd lock;                // keep both open for as long as the tree is mounted: that of the tree
  Fd name_lock;           // and that of the name or path by which it was opened
};

struct ListedImage {
  std::string name;  // for an image that is named by its path, that
  ImageRecord record;
  bool is_in_use = false;  // by this name
  std::string damage;      // what is wrong with it, and what to do; empty: nothing
};

// What is known of a tree from its being unpacked.
struct TreeFacts {
  TreeCounts counts;
  std::vector<std::string> diff_ids;  // of its layers, lowest first; none of a folder's tree
};

enum class MissingStore { is_made, is_empty };

class ImageStore {
 public:
  // With MissingStore::is_empty a store that does not exist is one without images. Errors: host_unsupported.
  static Result<ImageStore> open(MissingStore missing);
  static Result<ImageStore> open(const std::string& path, MissingStore missing);

  // `reference`: see is_image_path() in spec/checks.h. Errors: unknown_image, with the names that there are; bad_image
  // for damage.
  Result<LoadedImage> open_image(const std::string& reference) const;

  // Those with a name first, then those that are named by their path; damaged ones too.
  std::vector<ListedImage> list() const;

  // One of them. A path need not lead to anything any more. Errors: unknown_image.
  Result<ListedImage> find(std::string_view reference) const;

  // Removes a name or path, and its tree with it unless something else leads to that. Errors: unknown_image;
  // image_in_use, when a sandbox runs on the image by that name.
  Result<void> remove(std::string_view reference);

  // Removes what nothing leads to: half-loaded trees, trees without a name, images named by a path whose file changed.
  // Returns how many.
  Result<std::uint64_t> collect_garbage();

  const std::string& path() const { return path_; }

  // --- For loading -----------------------------------------------------------------------------------------------

  // Waits for other loads to end, and clears building/. Hold the result while you use building/.
  Result<Fd> lock_loading();

  // Returns how much was in it.
  std::uint64_t clear_building();

  // Keeps names and trees as they are, but for what the holder does. Taken after lock_loading(), where both are.
  Result<Fd> lock() const;

  // Makes building/new with an empty folder `root` in it, and returns the path of building/new.
  Result<std::string> make_building_folder();

  std::string tree_path(std::string_view tree) const;
  bool has_tree(std::string_view tree) const;
  Result<TreeFacts> tree_facts(std::string_view tree) const;

  // Under lock(): moves building/new to its place, when it is on the disk. One that is there already is as good.
  Result<void> publish_tree(std::string_view tree, const TreeFacts& facts);

  // Under lock(): writes the record under the name or the key of its path. The tree that the name or path had before
  // goes, unless it is used.
  Result<void> write_name(std::string_view name, const ImageRecord& record);
  Result<void> write_path(const SourceIdentity& identity, const ImageRecord& record);

  // The record of a path, if its file has not changed since and its tree is there.
  std::optional<ImageRecord> find_path(const SourceIdentity& identity) const;

 private:
  ImageStore(std::string path, Fd folder) : path_(std::move(path)), folder_(std::move(folder)) {}
  Result<void> make_folders();
  Result<Fd> lock_file(const char* name) const;
  Result<Fd> open_record_file(const std::string& file) const;
  Result<ImageRecord> read_record(const std::string& file) const;
  Result<ImageRecord> read_record(const Fd& opened, const std::string& file) const;
  Result<std::string> find_record(std::string_view reference) const;
  ListedImage look_at(std::string name, const std::string& file) const;
  Result<void> write_record(const std::string& file, const ImageRecord& record);
  Result<LoadedImage> open_record(const std::string& file) const;
  std::vector<std::string> names_in(const char* folder) const;
  std::size_t count_references(std::string_view tree) const;
  Result<Fd> claim_tree(const std::string& tree);
  Result<void> drop_tree(const std::string& tree, Fd claim);
  Result<void> drop_unless_used(const std::string& tree);
  std::unexpected<Error> unknown(std::string_view name) const;

  std::string path_;
  Fd folder_;  // not open: there is no store
};

}  // namespace belljar
