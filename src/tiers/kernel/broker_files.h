// Answers requests about files: what lies in the root file system that the broker runs in, but for the kernel's own
// trees.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/mapping.h"
#include "base/result.h"
#include "kernel/broker/rings_shm.h"
#include "tiers/kernel/cache_index.h"
#include "tiers/kernel/cache_keeper.h"

namespace belljar::broker {

class Files {
 public:
  // `keeper`: outlives this.
  bool open(const content_cache::Keeper& keeper, const kernel::shm::Boot& boot);
  // Fills in the answer and wakes who asked.
  void answer(kernel::shm::Request& request);

 private:
  // What a request asks, copied out of shared memory once.
  struct Question {
    kernel::shm::Operation operation;
    std::uint64_t arguments[4];
    std::string path;
  };
  struct Place {
    int folder;        // valid until the next find()
    std::string name;  // empty: the root itself
  };

  std::int64_t decide(const Question& question, kernel::shm::Request& request);
  SysResult<Place> find(const std::string& path);
  SysResult<int> find_folder(std::string_view path);
  std::int64_t stat(const Question& question, kernel::shm::Request& request);
  std::int64_t read_link(const Question& question, kernel::shm::Request& request);
  std::int64_t list(const Question& question, kernel::shm::Request& request);
  std::int64_t fetch(const Question& question, kernel::shm::Request& request);
  std::int64_t read_live(const Question& question, kernel::shm::Request& request) const;
  std::int64_t read(const Question& question, kernel::shm::Request& request);
  // Whether a file of that size is to be read part by part: copies have had their share of the sandbox's memory.
  bool goes_in_parts(const Question& question, std::uint64_t size);
  // The file of a path, which is no link.
  SysResult<Fd> open_file(const std::string& path);
  // Answers with what the content cache has of an open file; false: it has nothing, and can't have.
  bool show_cached(int file, const struct stat& status, kernel::shm::Request& request) const;
  // What was listed for the request before is read by now: its pages go back.
  void release_listing(const kernel::shm::Request& request);
  // Room in the content file; nothing when it is full.
  std::optional<std::uint64_t> take_content(std::uint64_t size);

  Fd root_;
  // Names of one folder are mostly asked one after the other.
  std::string last_path_;
  Fd last_folder_;
  std::optional<content_cache::Index> cache_;
  const content_cache::Keeper* keeper_ = nullptr;
  struct Listing {
    std::uint64_t offset = 0, size = 0;
  };
  std::map<const kernel::shm::Request*, Listing> listings_;
  const kernel::shm::Boot* boot_ = nullptr;
  std::optional<std::uint64_t> copies_max_;
  char* content_ = nullptr;
  std::uint64_t content_used_ = kernel::kPageSize;  // offset 0 stands for nothing
  std::uint64_t copied_ = 0;                        // bytes of it that are copies of files
};

}  // namespace belljar::broker
