#include "image/gzip_stream.h"

#include <fmt/format.h>

#include <cstdlib>

#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr int kGzipWindow = 15 + 16;  // any window, and gzip's header and end: inflateInit2() in zlib.h

std::unexpected<Error> damaged(std::string_view why) {
  return fail(ErrorCode::bad_image, fmt::format("can't be unpacked: its gzip stream is damaged: {}", why));
}

}  // namespace

bool is_gzip(std::string_view begin) {
  return begin.starts_with("\x1f\x8b");
}

GzipStream::GzipStream(ByteSource source) : source_(std::move(source)), output_(kPieceBytes, '\0') {
  if (::inflateInit2(&stream_, kGzipWindow) != Z_OK) std::abort();  // out of memory
}

GzipStream::~GzipStream() {
  ::inflateEnd(&stream_);
}

Result<void> GzipStream::read_more() {
  const std::string_view piece = TRY(source_());
  is_source_ended_ = piece.empty();
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));  // NOLINT(*-const-cast): zlib only reads
  stream_.avail_in = static_cast<uInt>(piece.size());
  return {};
}

Result<std::string_view> GzipStream::next() {
  while (true) {
    if (stream_.avail_in == 0 && !is_source_ended_) TRY_VOID(read_more());
    if (is_between_members_) {
      while (stream_.avail_in > 0 && *stream_.next_in == 0) {
        ++stream_.next_in;
        --stream_.avail_in;
      }
      if (is_source_ended_) return std::string_view();
      if (stream_.avail_in == 0) continue;
      is_between_members_ = false;
    }
    const std::string_view piece = TRY(inflate_piece());
    if (!piece.empty()) return piece;
  }
}

Result<std::string_view> GzipStream::inflate_piece() {
  stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
  stream_.avail_out = static_cast<uInt>(output_.size());
  const int result = ::inflate(&stream_, Z_NO_FLUSH);
  if (result == Z_STREAM_END) {
    is_between_members_ = true;
    ::inflateReset(&stream_);
  } else if (result == Z_BUF_ERROR && is_source_ended_) {
    return damaged("it is cut off");
  } else if (result != Z_OK && result != Z_BUF_ERROR) {
    return damaged(stream_.msg == nullptr ? "no sense can be made of it" : stream_.msg);
  }
  return std::string_view(output_.data(), output_.size() - stream_.avail_out);
}

}  // namespace belljar
