#include "image/image_loader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <vector>

#include "base/sha256.h"
#include "base/utf8.h"
#include "image/archive_reader.h"
#include "image/confined.h"
#include "image/image_source.h"
#include "image/unpacking.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kPipeBytes = std::size_t{1} << 20;     // the most that an ordinary user may ask for: pipe(7)
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;  // still in the processor's cache when it is handed on
constexpr std::string_view kArchiveFile = "archive";

std::unexpected<Error> refuse(std::string why) {
  return fail(ErrorCode::bad_image, std::move(why));
}

// A pipe whose reader has ended is an error to be read, not a signal to die of.
class IgnoreBrokenPipes {
 public:
  IgnoreBrokenPipes() { before_ = ::signal(SIGPIPE, SIG_IGN); }
  IgnoreBrokenPipes(const IgnoreBrokenPipes&) = delete;
  IgnoreBrokenPipes& operator=(const IgnoreBrokenPipes&) = delete;
  ~IgnoreBrokenPipes() { ::signal(SIGPIPE, before_); }

 private:
  sighandler_t before_;
};

// Writes all of `bytes` to a pipe that does not block. False once nobody reads it any more.
Result<bool> feed_bytes(int pipe_fd, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(pipe_fd, bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EPIPE) return false;
    if (errno != EAGAIN && errno != EINTR) return refuse(fmt::format("can't be handed on: {}", errno_text(errno)));
    pollfd waiting{.fd = pipe_fd, .events = POLLOUT, .revents = 0};
    if (::poll(&waiting, 1, milliseconds_until(deadline)) == 0) return took_too_long();
  }
  return true;
}

// Hands the blob to `take` in pieces; returns its SHA-256, or nothing when `take` wanted no more of it.
template <typename Take>
Result<std::string> read_blob(const Blob& blob, Take take) {
  Sha256 hash;
  std::string buffer(kPieceBytes, '\0');
  for (std::uint64_t done = 0; done < blob.size;) {
    const ssize_t count =
        ::pread(blob.file->get(), buffer.data(), std::min<std::uint64_t>(buffer.size(), blob.size - done),
                static_cast<off_t>(blob.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse(fmt::format("can't be read: {}", errno_text(errno)));
    if (count == 0) return refuse("it is cut off");
    const std::string_view piece(buffer.data(), static_cast<std::size_t>(count));
    hash.update(piece);
    if (!TRY(take(piece))) return std::string();
    done += piece.size();
  }
  return hash.finish();
}

// As read_blob(), to a pipe.
Result<std::string> feed_blob(const Blob& blob, int pipe_fd, Deadline deadline) {
  return read_blob(blob, [&](std::string_view piece) { return feed_bytes(pipe_fd, piece, deadline); });
}

Result<std::string> hash_blob(const Blob& blob, Deadline deadline) {
  return read_blob(blob, [&](std::string_view) -> Result<bool> {
    if (milliseconds_until(deadline) == 0) return took_too_long();
    return true;
  });
}

Result<void> check_digest(const PlannedLayer& layer, const std::string& found) {
  if (layer.digest.empty() || layer.digest == found) return {};
  return refuse(fmt::format("the layer sha256:{} has the digest sha256:{}", layer.digest, found));
}

Result<void> check_diff_id(const std::string& said, const std::string& found) {
  if (said.empty() || said == found) return {};
  return refuse(fmt::format("a layer unpacks to sha256:{}, and the configuration says sha256:{}", found, said));
}

// What an unpacked layer came from.
struct FedLayer {
  UnpackReport report;
  std::string digest;
};

class Loader {
 public:
  Loader(ImageStore& store, const std::string& source, const LoadLimits& limits)
      : store_(store),
        source_(source),
        limits_(limits),
        deadline_(std::chrono::steady_clock::now() + limits.time_max) {}

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader() {
    if (loading_.is_open()) store_.clear_building();
  }

  // Has the tree in place, and keeps the store's locks until the record is written.
  Result<ImageRecord> load() {
    loading_ = TRY(store_.lock_loading());
    deadline_ = std::chrono::steady_clock::now() + limits_.time_max;
    building_ = TRY(store_.make_building_folder());
    auto source = open_at(AT_FDCWD, source_.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat status{};
    if (!source || ::fstat(source->get(), &status) != 0) {
      return refuse(errno_text(source ? errno : source.error().value));
    }
    if (S_ISDIR(status.st_mode)) return load_folder(std::move(*source));
    if (S_ISREG(status.st_mode)) return load_archive(std::make_shared<Fd>(std::move(*source)));
    return refuse("this is neither a file nor a folder");
  }

 private:
  Result<ImageRecord> load_folder(Fd folder) {
    if (::faccessat(folder.get(), "oci-layout", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
      return load_plan(TRY(plan_oci_image(SavedImage(std::move(folder)), "OCI layout")));
    }
    const std::string path = TRY(real_path());
    ConfinedWork work = new_work();
    work.source_folder = path;
    work.run = [this](const ConfinedPlaces& places) { return copy_folder_child(places, ownership_, tree_limits()); };
    const std::string text = TRY(run(work));
    const UnpackReport report = TRY(read_unpack_report(text));
    record_.form = "root file system in a folder";
    return finish(sha256_of("folder 2\n" + report.diff_id), report.counts);
  }

  Result<ImageRecord> load_archive(std::shared_ptr<Fd> file) {
    ArchiveListing listing = TRY(list(*file));
    if (listing.form == ArchiveForm::rootfs) return load_rootfs(std::move(file));
    if (listing.is_packed) {
      file = TRY(expand(*file));
      listing = TRY(list(*file));
    }
    const bool is_oci = listing.form == ArchiveForm::oci;
    const SavedImage saved(std::move(file), std::move(listing.members));
    return load_plan(TRY(is_oci ? plan_oci_image(saved, "OCI archive") : plan_docker_image(saved)));
  }

  Result<ImageRecord> load_rootfs(std::shared_ptr<Fd> file) {
    struct stat status{};
    if (::fstat(file->get(), &status) != 0) return refuse(errno_text(errno));
    ImagePlan plan{.form = "root file system in an archive"};
    plan.layers.push_back({.blob = {.file = std::move(file), .size = static_cast<std::uint64_t>(status.st_size)}});
    plan.whiteouts = Whiteouts::literal;
    return load_plan(std::move(plan));
  }

  Result<ArchiveListing> list(const Fd& file) {
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return refuse(errno_text(errno));
    ConfinedWork work = new_work();
    work.access = FolderAccess::read_only;
    work.input_fd = file.get();
    work.run = [&file](const ConfinedPlaces&) { return list_archive_child(file.get()); };
    const std::string text = TRY(run(work));
    return read_listing_report(text);
  }

  // An image archive that is packed as a whole: its members are read from an unpacked copy.
  Result<std::shared_ptr<Fd>> expand(const Fd& file) {
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return refuse(errno_text(errno));
    ConfinedWork work = new_work();
    work.input_fd = file.get();
    work.run = [this, &file](const ConfinedPlaces& places) {
      return expand_archive_child(file.get(), places.folder_fd, kArchiveFile, limits_.bytes_max);
    };
    const std::string text = TRY(run(work));
    TRY_VOID(read_plain_report(text));
    const std::string path = fmt::format("{}/{}", building_, kArchiveFile);
    auto copy = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!copy || ::unlink(path.c_str()) != 0) return refuse("its unpacked copy can't be read");
    return std::make_shared<Fd>(std::move(*copy));
  }

  Result<ImageRecord> load_plan(ImagePlan plan) {
    record_.form = plan.form;
    record_.manifest_digest = plan.manifest_digest;
    record_.config_digest = plan.config_digest;
    record_.config = std::move(plan.config);
    if (const std::string tree = expected_tree(plan); !tree.empty() && store_.has_tree(tree)) {
      if (auto shared = TRY(share(tree, plan))) return std::move(*shared);
    }
    TreeCounts counts;
    std::vector<std::string> digests;
    for (const PlannedLayer& layer : plan.layers) {
      const FedLayer fed = TRY(unpack(layer, plan.whiteouts, counts));
      counts = fed.report.counts;
      digests.push_back(fed.digest);
      record_.layers.push_back({.digest = fed.digest, .diff_id = fed.report.diff_id, .size = layer.blob.size});
    }
    return finish(tree_of(digests, plan.whiteouts, record_.config.working_folder), counts);
  }

  // A layer counts as known by its digest, which was computed here, and never by what it unpacks to, which was computed
  // by a process that the layer may have taken over: it could claim to be a layer that other images have too. The
  // working folder is part of a tree, which has it made.
  static std::string tree_of(const std::vector<std::string>& digests, Whiteouts whiteouts,
                             const std::string& working_folder) {
    std::string text = whiteouts == Whiteouts::applied ? "layers 2\n" : "rootfs 2\n";
    for (const std::string& digest : digests) text += digest + '\n';
    if (!working_folder.empty()) text += fmt::format("workdir {}\n", working_folder);
    return sha256_of(text);
  }

  // The tree that the plan must lead to; empty where only reading the layers can tell.
  std::string expected_tree(const ImagePlan& plan) const {
    std::vector<std::string> digests;
    for (const PlannedLayer& layer : plan.layers) {
      // A docker archive names what its layers unpack to, and mostly has them unpacked.
      const std::string& digest = layer.digest.empty() ? layer.diff_id : layer.digest;
      if (digest.empty()) return "";
      digests.push_back(digest);
    }
    return tree_of(digests, plan.whiteouts, record_.config.working_folder);
  }

  Result<FedLayer> unpack(const PlannedLayer& layer, Whiteouts whiteouts, const TreeCounts& counts) {
    auto pipe = make_pipe();
    if (!pipe) return fail(ErrorCode::no_resources, "no pipe for a layer");
    ::fcntl(pipe->write.get(), F_SETPIPE_SZ, kPipeBytes);
    ::fcntl(pipe->write.get(), F_SETFL, O_NONBLOCK);
    const LayerPlace place = record_.layers.empty() ? LayerPlace::first : LayerPlace::upper;
    ConfinedWork work = new_work();
    work.input_fd = pipe->read.get();
    work.run = [&](const ConfinedPlaces& places) {
      return unpack_layer_child(pipe->read.get(), places, whiteouts, place, ownership_, tree_limits(), counts);
    };
    ConfinedProcess process = TRY(ConfinedProcess::start(work));
    pipe->read.reset();
    const std::string digest = TRY(named(layer, feed_blob(layer.blob, pipe->write.get(), deadline_)));
    pipe->write.reset();
    const std::string text = TRY(named(layer, process.finish(deadline_)));
    FedLayer fed{.report = TRY(named(layer, read_unpack_report(text))), .digest = digest};
    if (fed.digest.empty()) return refuse("the confined process that reads it ended before the layer did");
    if (fed.report.diff_id.empty()) fed.report.diff_id = fed.digest;
    TRY_VOID(check_digest(layer, fed.digest));
    TRY_VOID(check_diff_id(layer.diff_id, fed.report.diff_id));
    return fed;
  }

  // Says in an error which layer it is about.
  template <typename T>
  static Result<T> named(const PlannedLayer& layer, Result<T> result) {
    if (!result && !layer.digest.empty()) {
      result.error().message = fmt::format("layer sha256:{}: {}", layer.digest.substr(0, 12), result.error().message);
    }
    return result;
  }

  // The layers as they are, if they are what expected_tree() took them for; no error where only unpacking can tell.
  Result<std::optional<std::vector<ImageLayer>>> hash_layers(const ImagePlan& plan) const {
    std::vector<ImageLayer> layers;
    for (const PlannedLayer& layer : plan.layers) {
      std::string digest = TRY(named(layer, hash_blob(layer.blob, deadline_)));
      TRY_VOID(check_digest(layer, digest));
      if (layer.digest.empty() && digest != layer.diff_id) return std::nullopt;
      layers.push_back({.digest = std::move(digest), .diff_id = layer.diff_id, .size = layer.blob.size});
    }
    return layers;
  }

  // The image on a tree that was unpacked before; none where the tree is not that of these layers, or was removed just
  // now. What a configuration says of the layers is held against what they unpacked to then.
  Result<std::optional<ImageRecord>> share(const std::string& tree, const ImagePlan& plan) {
    auto layers = TRY(hash_layers(plan));
    if (!layers) return std::nullopt;
    held_ = TRY(store_.lock());
    if (!store_.has_tree(tree)) {
      held_.reset();
      return std::nullopt;
    }
    const TreeFacts facts = TRY(store_.tree_facts(tree));
    if (facts.diff_ids.size() != layers->size()) return refuse(fmt::format("its tree {} is damaged", tree));
    for (std::size_t i = 0; i < layers->size(); ++i) {
      TRY_VOID(check_diff_id((*layers)[i].diff_id, facts.diff_ids[i]));
    }
    record_.layers = std::move(*layers);
    TRY_VOID(describe(store_.tree_path(tree), FolderAccess::read_only));
    return TRY(complete(tree, facts.counts));
  }

  Result<ImageRecord> finish(const std::string& tree, const TreeCounts& counts) {
    TRY_VOID(describe(building_ + "/root", FolderAccess::read_write));
    held_ = TRY(store_.lock());
    TreeFacts facts{.counts = counts, .diff_ids = {}};
    for (const ImageLayer& layer : record_.layers) facts.diff_ids.push_back(layer.diff_id);
    TRY_VOID(store_.publish_tree(tree, facts));
    return complete(tree, counts);
  }

  // Looks at the tree as a whole: its top, and who the image's user is. A new one is given what it lacks.
  Result<void> describe(const std::string& root, FolderAccess access) {
    ConfinedWork work = new_work();
    work.folder = root;
    work.access = access;
    work.run = [&](const ConfinedPlaces& places) {
      return describe_tree_child(places.folder_fd, access, record_.config);
    };
    const std::string text = TRY(run(work));
    TreeDescription described = TRY(read_description_report(text));
    record_.parts = std::move(described.parts);
    record_.config.uid = described.user.uid;
    record_.config.gid = described.user.gid;
    return {};
  }

  Result<ImageRecord> complete(const std::string& tree, const TreeCounts& counts) {
    record_.tree = tree;
    record_.source = TRY(real_path());
    record_.counts = counts;
    record_.loaded_s = std::time(nullptr);
    return std::move(record_);
  }

  Result<std::string> real_path() const {
    std::array<char, PATH_MAX> path{};
    if (::realpath(source_.c_str(), path.data()) == nullptr) return refuse(errno_text(errno));
    return std::string(path.data());
  }

  ConfinedWork new_work() const {
    using std::chrono::duration_cast;
    ConfinedWork work;
    work.folder = building_;
    work.access = FolderAccess::read_write;
    work.file_bytes_max = limits_.bytes_max;
    work.cpu_seconds_max =
        static_cast<std::uint64_t>(duration_cast<std::chrono::seconds>(limits_.time_max).count()) + 1;
    return work;
  }

  TreeLimits tree_limits() const { return {.entries_max = limits_.entries_max, .bytes_max = limits_.bytes_max}; }

  Result<std::string> run(const ConfinedWork& work) const {
    ConfinedProcess process = TRY(ConfinedProcess::start(work));
    return process.finish(deadline_);
  }

  ImageStore& store_;
  const std::string& source_;
  const LoadLimits& limits_;
  Deadline deadline_;
  const Ownership ownership_ = keeps_image_ids() ? Ownership::image : Ownership::caller;
  Fd loading_;  // the store's locks, in the order in which they are taken
  Fd held_;
  std::string building_;
  ImageRecord record_;
};

// Loads, and has `write` name the record while the store is locked.
template <typename Write>
Result<ImageRecord> load_and_write(ImageStore& store, const std::string& source, const LoadLimits& limits,
                                   Write write) {
  const IgnoreBrokenPipes ignore;
  Loader loader(store, source, limits);
  Result<ImageRecord> record = loader.load();
  if (record) {
    if (auto written = write(*record); !written) record = std::unexpected(written.error());
  }
  if (!record) record.error().message = fmt::format("{}: {}", one_line(source), record.error().message);
  return record;
}

}  // namespace

Result<ImageRecord> load_image(ImageStore& store, const std::string& name, const std::string& source,
                               const LoadLimits& limits) {
  return load_and_write(store, source, limits,
                        [&](const ImageRecord& record) { return store.write_name(name, record); });
}

Result<ImageRecord> load_image_path(ImageStore& store, const std::string& path, const LoadLimits& limits) {
  const SourceIdentity identity = TRY(source_identity(path));
  if (auto record = store.find_path(identity)) return std::move(*record);
  return load_and_write(store, path, limits, [&](ImageRecord& record) {
    record.identity = identity.state;
    return store.write_path(identity, record);
  });
}

}  // namespace belljar
