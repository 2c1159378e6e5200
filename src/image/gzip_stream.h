// Unpacks gzip (RFC 1952) and holds each of its members against the checksum and length at the member's end, which
// libarchive passes over. What is read is hostile: see archive_reader.h.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "image/archive_reader.h"

namespace belljar {

// Whether a stream that begins so, with two bytes or more, is packed by gzip.
bool is_gzip(std::string_view begin);

class GzipStream {
 public:
  explicit GzipStream(ByteSource source);
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream();

  // The next piece, valid until the next call; empty at the end, where zeros may follow the last member. Errors:
  // bad_image, and those of the source.
  Result<std::string_view> next();

 private:
  Result<void> read_more();
  Result<std::string_view> inflate_piece();

  ByteSource source_;
  z_stream stream_{};
  std::string output_;
  bool is_source_ended_ = false;
  bool is_between_members_ = false;
};

}  // namespace belljar
