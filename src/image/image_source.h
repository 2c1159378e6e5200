// What an image is loaded from: a folder or an archive, and where in it the image's documents and layers lie.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "image/archive_reader.h"
#include "image/image_manifest.h"

namespace belljar {

// A part of an open file.
struct Blob {
  std::shared_ptr<Fd> file;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

// The documents and layers of a saved image by name ("index.json", "blobs/sha256/..."), in a folder or an archive.
// What is opened are regular files beneath the folder, through no link.
class SavedImage {
 public:
  explicit SavedImage(Fd folder) : folder_(std::move(folder)) {}
  SavedImage(std::shared_ptr<Fd> archive, std::vector<ArchiveMember> members);

  // Errors: bad_image (there is no such member, or it is no file).
  Result<Blob> find(const std::string& name) const;

  // Reads a whole document, at most `bytes_max` of it.
  Result<std::string> read(const std::string& name, std::size_t bytes_max) const;

 private:
  Result<Blob> find_in_folder(const std::string& name) const;

  Fd folder_;
  std::shared_ptr<Fd> archive_;
  std::map<std::string, ArchiveMember> members_;
};

struct PlannedLayer {
  Blob blob;
  std::string digest;   // 64 hexadecimal digits; empty where the form does not name it
  std::string diff_id;  // the same
};

// Everything that was read of an image before its layers are.
struct ImagePlan {
  std::string form;
  std::string manifest_digest;
  std::string config_digest;
  ImageConfig config;
  std::vector<PlannedLayer> layers;  // lowest first
  Whiteouts whiteouts = Whiteouts::applied;
};

// Follow index, manifest and configuration to the layers. Every document is held against the digest and size that lead
// to it. Errors: bad_image.
Result<ImagePlan> plan_oci_image(const SavedImage& saved, std::string form);
Result<ImagePlan> plan_docker_image(const SavedImage& saved);

}  // namespace belljar
