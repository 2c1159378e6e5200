// The changes that wait to be applied or discarded, on disk. Layout of the store's folder, which belongs to the caller
// and nobody else can enter:
//
//   ID/changes.json  a Changeset (changeset.h)
//   ID/contents/...  the new contents of its files, each under its digest
//   new-..., old-... sets on their way in or out
//
// A set arrives and leaves by rename(2), whole. Whoever works on one holds a flock(2) on its folder; a folder new-...
// or old-... that nobody holds was left by a process that was killed, and is removed by the next that opens the store,
// as gc does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "files/changeset.h"

namespace belljar {

// $XDG_STATE_HOME/belljar/changes, or that below ~/.local/state. `lookup` is getenv(3) or a test's. Errors:
// bad_changes.
Result<std::string> change_store_folder(const char* (*lookup)(const char* name));

bool is_changeset_id(std::string_view id);

// A set on its way in. Removed with this object unless publish() was called.
class NewChangeset {
 public:
  NewChangeset(NewChangeset&&) = default;
  NewChangeset& operator=(NewChangeset&&) = delete;
  ~NewChangeset();

  int contents_fd() const { return contents_.get(); }

  // Returns the set's id, and lets the set go. Errors: bad_changes.
  Result<std::string> publish(const Changeset& changeset);

 private:
  friend class ChangeStore;
  NewChangeset(Fd store, std::string name) : store_(std::move(store)), name_(std::move(name)) {}

  Fd store_;
  std::string name_;
  Fd folder_;  // holds the lock
  Fd contents_;
};

struct KeptChangeset {
  std::string id;
  Changeset changeset;
  Fd folder;    // holds the lock
  Fd contents;  // O_PATH
};

struct ListedChangeset {
  std::string id;
  Changeset changeset;
  std::uint64_t size = 0;  // bytes of the new contents
  std::string damage;      // why nothing is known of it but its id; else empty
};

enum class ChangesetUse { reading, working, discarding };

class ChangeStore {
 public:
  // Makes the folder where it is missing. Errors: bad_changes.
  static Result<ChangeStore> open(const std::string& path);

  // How many sets that a killed process had left were removed as this was opened.
  std::uint64_t abandoned_count() const { return abandoned_count_; }

  Result<NewChangeset> begin() const;

  // The oldest first; before them those that are damaged.
  std::vector<ListedChangeset> list() const;

  // Errors: no_changes; bad_changes, when another process works on it, or when it is damaged. To be discarded, what
  // can't be read of it is empty.
  Result<KeptChangeset> take(std::string_view id, ChangesetUse use) const;

  // What is left of a set: an empty one is removed. Errors: bad_changes.
  Result<void> put_back(const KeptChangeset& kept) const;
  Result<void> remove(const KeptChangeset& kept) const;

 private:
  explicit ChangeStore(Fd folder) : folder_(std::move(folder)) {}
  void clear_abandoned();

  Fd folder_;
  std::uint64_t abandoned_count_ = 0;
};

}  // namespace belljar
