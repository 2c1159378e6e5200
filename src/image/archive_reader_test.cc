#include "image/archive_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fd.h"
#include "base/sha256.h"
#include "image/test_tar.h"
#include "spec/errors.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using test_tar::archive;
using test_tar::Entry;
using test_tar::pax_record;
using testing::HasSubstr;

std::string gzip(const std::string& bytes, int level = 6) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(::deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string& bytes) {
  std::string packed(::ZSTD_compressBound(bytes.size()), '\0');
  packed.resize(::ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 3));
  return packed;
}

std::string xz(const std::string& bytes) {
  std::string packed(::lzma_stream_buffer_bound(bytes.size()), '\0');
  std::size_t size = 0;
  EXPECT_EQ(
      ::lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                bytes.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()),
      LZMA_OK);
  packed.resize(size);
  return packed;
}

// Hands the bytes out in pieces, so that entries lie across their borders.
ByteSource source_of(const std::string& bytes, std::size_t piece = 1000) {
  return [&bytes, piece, done = std::size_t{0}]() mutable -> Result<std::string_view> {
    const std::string_view next = std::string_view(bytes).substr(done, piece);
    done += next.size();
    return next;
  };
}

class ArchiveReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "archive_reader.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    root_ = folder_ / "root";
    fs::create_directory(root_);
    fd_ = Fd(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<std::string> unpack(const std::string& bytes, LayerPlace place = LayerPlace::first) {
    TreeWriter writer(fd_.get(), Ownership::caller, {.entries_max = 1000, .bytes_max = 1 << 20}, place, TreeCounts{});
    auto result = unpack_layer(source_of(bytes), Whiteouts::applied, writer);
    counts_ = writer.counts();
    return result;
  }

  std::string refusal(const std::string& bytes) {
    const auto result = unpack(bytes);
    EXPECT_FALSE(result.has_value());
    return result ? "" : result.error().message;
  }

  std::string content(const std::string& path) const {
    std::ostringstream text;
    text << std::ifstream(root_ / path).rdbuf();
    return text.str();
  }
  bool is_there(const std::string& path) const {
    return fs::symlink_status(root_ / path).type() != fs::file_type::not_found;
  }

  Result<ArchiveListing> list(const std::string& bytes) {
    std::ofstream(folder_ / "archive") << bytes;
    const Fd file(::open((folder_ / "archive").c_str(), O_RDONLY | O_CLOEXEC));
    return list_archive(file.get());
  }

  fs::path folder_;
  fs::path root_;
  Fd fd_;
  TreeCounts counts_;
};

TEST_F(ArchiveReaderTest, UnpacksEveryPacking) {
  const std::string big(100'000, 'b');
  const std::string plain = archive({{.name = "./", .type = '5', .mode = 0755},
                                     {.name = "./etc/", .type = '5', .mode = 0755},
                                     {.name = "./etc/motd", .content = "hello"},
                                     {.name = "big", .content = big},
                                     {.name = "link", .type = '2', .link = "etc/motd"}});
  for (const std::string& bytes : {plain, gzip(plain), zstd(plain), xz(plain)}) {
    const auto diff_id = unpack(bytes);
    ASSERT_TRUE(diff_id.has_value()) << diff_id.error().message;
    EXPECT_EQ(*diff_id, bytes == plain ? "" : sha256_of(plain));
    EXPECT_EQ(content("etc/motd"), "hello");
    EXPECT_EQ(content("big"), big);
    EXPECT_EQ(fs::read_symlink(root_ / "link"), "etc/motd");
  }
}

TEST_F(ArchiveReaderTest, TakesAnEmptyLayer) {
  const std::string empty(1024, '\0');
  EXPECT_EQ(unpack(gzip(empty)).value_or(""), sha256_of(empty));
}

TEST_F(ArchiveReaderTest, HashesTheStreamToItsEnd) {
  const std::string padded = archive({{.name = "f", .content = "x"}}) + std::string(100'000, '\0');
  for (const std::string& packed : {gzip(padded), zstd(padded), xz(padded)}) {
    EXPECT_EQ(unpack(packed).value_or(""), sha256_of(padded));
  }
}

TEST_F(ArchiveReaderTest, HoldsGzipAgainstItsChecksumAndLength) {
  const std::string plain = archive({{.name = "f", .content = std::string(300'000, 'x')}, {.name = "g"}});
  const std::string sound = gzip(plain);
  const auto with_byte_changed = [&sound](std::size_t from_end) {
    std::string bytes = sound;
    bytes[bytes.size() - from_end] ^= 1;
    return bytes;
  };
  ASSERT_TRUE(unpack(sound));
  EXPECT_THAT(refusal(with_byte_changed(8)), HasSubstr("damaged: incorrect data check"));
  EXPECT_THAT(refusal(with_byte_changed(4)), HasSubstr("damaged: incorrect length check"));
  for (const std::size_t missing : {std::size_t{1}, std::size_t{8}, std::size_t{9}, sound.size() - 3}) {
    EXPECT_THAT(refusal(sound.substr(0, sound.size() - missing)), HasSubstr("damaged: it is cut off")) << missing;
  }
  // A content that is damaged so that it can still be unpacked.
  std::string stored = gzip(plain, 0);
  ASSERT_TRUE(unpack(stored));
  stored[100'000] = 'y';
  EXPECT_THAT(refusal(stored), HasSubstr("damaged: incorrect data check"));
}

TEST_F(ArchiveReaderTest, ReadsEveryMemberOfAGzipStream) {
  const std::string plain = archive({{.name = "f", .content = std::string(5000, 'x')}, {.name = "g", .content = "y"}});
  const std::string members = gzip(plain.substr(0, 3000)) + gzip("") + gzip(plain.substr(3000));
  EXPECT_EQ(unpack(members).value_or(""), sha256_of(plain));
  EXPECT_EQ(unpack(members + std::string(2000, '\0')).value_or(""), sha256_of(plain)) << "padded, as tapes are";
  EXPECT_THAT(refusal(members + "more"), HasSubstr("damaged: incorrect header check"));
  EXPECT_THAT(refusal(members + gzip(plain).substr(0, 15)), HasSubstr("damaged: it is cut off"));
}

TEST_F(ArchiveReaderTest, TakesTheBytesOfNamesAsTheyAre) {
  const std::string utf8 = "na\xC3\xAFve";
  const std::string decomposed = "ne\xCC\x81";
  const std::string latin = "b\xE4r";
  const std::string longer = std::string(150, 'd') + "/" + std::string(200, 'f');
  const auto result = unpack(archive({{.name = "p", .content = "1", .pax = pax_record("path", utf8)},
                                      {.name = "q", .content = "2", .pax = pax_record("path", latin)},
                                      {.name = latin + "2", .content = "3"},
                                      {.name = "r", .content = "4", .pax = pax_record("path", longer)},
                                      {.name = "s", .content = "5", .pax = pax_record("path", decomposed)},
                                      {.name = "l", .type = '2', .link = "?", .pax = pax_record("linkpath", utf8)},
                                      {.name = "m", .type = '2', .link = "?", .pax = pax_record("linkpath", latin)},
                                      {.name = "h", .type = '1', .link = "?", .pax = pax_record("linkpath", utf8)}}));
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(content(utf8), "1");
  EXPECT_EQ(content(latin), "2");
  EXPECT_EQ(content(latin + "2"), "3");
  EXPECT_EQ(content(longer), "4");
  EXPECT_EQ(content(decomposed), "5");
  EXPECT_EQ(content("h"), "1");
  EXPECT_EQ(fs::read_symlink(root_ / "l"), utf8);
  EXPECT_EQ(fs::read_symlink(root_ / "m"), latin);
}

TEST_F(ArchiveReaderTest, AppliesWhiteoutsWhateverTheirType) {
  ASSERT_TRUE(unpack(
      archive({{.name = "a", .content = "x"}, {.name = "b", .content = "x"}, {.name = "d/x"}, {.name = "d/y"}})));
  ASSERT_TRUE(unpack(archive({{.name = ".wh.a"},
                              {.name = ".wh.b", .type = '1', .link = "d/x"},
                              {.name = "d/.wh..wh..opq", .type = '5'},
                              {.name = "d/z"},
                              {.name = ".wh..wh.plnk/1.2", .content = "x"}}),
                     LayerPlace::upper));
  for (const char* const gone : {"a", "b", "d/x", "d/y", ".wh.a", "d/.wh..wh..opq", ".wh..wh.plnk"}) {
    EXPECT_FALSE(is_there(gone)) << gone;
  }
  EXPECT_TRUE(is_there("d/z"));
}

TEST_F(ArchiveReaderTest, LeavesOutWhatAnImageMayNotHave) {
  ASSERT_TRUE(unpack(archive(
      {{.name = "null", .type = '3'},
       {.name = "pipe", .type = '6'},
       {.name = "su", .content = "x", .mode = 06755},
       {.name = "ping", .content = "x", .pax = pax_record("SCHILY.xattr.security.capability", "c")},
       {.name = "dir", .type = '5', .mode = 0755, .pax = pax_record("SCHILY.xattr.trusted.overlay.opaque", "y")},
       {.name = "far", .content = "x", .pax = pax_record("uid", "4294967295") + pax_record("gid", "-1")}})));
  EXPECT_FALSE(is_there("null"));
  EXPECT_FALSE(is_there("pipe"));
  EXPECT_TRUE(is_there("far"));
  EXPECT_EQ(counts_.special_files, 2U);
  EXPECT_EQ(counts_.set_id_bits, 1U);
  EXPECT_EQ(counts_.attributes, 2U);
  EXPECT_EQ(counts_.foreign_ids, 1U);
}

TEST_F(ArchiveReaderTest, RefusesARootThatIsNoFolder) {
  for (const char* const name : {".", "/", "./.", "./"}) {
    EXPECT_THAT(refusal(archive({{.name = name, .type = '2', .link = "/tmp"}})), HasSubstr("root can only be a folder"))
        << name;
  }
  EXPECT_THAT(refusal(archive({{.name = "h", .type = '1', .link = "/"}})), HasSubstr("hard link to the root"));
}

TEST_F(ArchiveReaderTest, RefusesToClimb) {
  EXPECT_THAT(refusal(archive({{.name = "../x", .content = "x"}})), HasSubstr(".. in it"));
  EXPECT_THAT(refusal(archive({{.name = "h", .type = '1', .link = "../../etc/passwd"}})), HasSubstr(".. in it"));
  EXPECT_FALSE(fs::exists(folder_ / "x"));
  ASSERT_TRUE(unpack(archive({{.name = "/abs", .content = "inside"}})));
  EXPECT_EQ(content("abs"), "inside");
}

TEST_F(ArchiveReaderTest, RefusesWhatIsNoTar) {
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal(std::string(5000, 'x')), HasSubstr("not a sound tar archive"));
  EXPECT_THAT(refusal(gzip(std::string(5000, 'x'))), HasSubstr("not a sound tar archive"));
  const std::string whole = archive({{.name = "f", .content = std::string(50'000, 'x')}});
  EXPECT_THAT(refusal(whole.substr(0, 20'000)), HasSubstr("not a sound tar archive"));
  const std::string packed = gzip(archive({{.name = "f", .content = std::string(50'000, 'x')}}));
  EXPECT_THAT(refusal(packed.substr(0, packed.size() / 2)), HasSubstr("can't be unpacked"));
}

TEST_F(ArchiveReaderTest, RefusesPackedInPacked) {
  const std::string plain = archive({{.name = "f", .content = "x"}});
  EXPECT_THAT(refusal(gzip(gzip(plain))), HasSubstr("pack it once"));
  EXPECT_THAT(refusal(gzip(xz(plain))), HasSubstr("pack it once"));
  EXPECT_THAT(refusal(zstd(gzip(plain))), HasSubstr("pack it once"));
  const auto listing = list(gzip(xz(plain)));
  ASSERT_FALSE(listing.has_value());
  EXPECT_THAT(listing.error().message, HasSubstr("pack it once"));
}

TEST_F(ArchiveReaderTest, RootFileSystemsHaveAnEndMark) {
  const std::string whole = archive({{.name = "f", .content = "x"}, {.name = "g", .content = "y"}});
  for (const std::size_t size : {std::size_t{512}, std::size_t{1024}, std::size_t{2048}, whole.size()}) {
    TreeWriter writer(fd_.get(), Ownership::caller, {.entries_max = 1000, .bytes_max = 1 << 20}, LayerPlace::first, {});
    const auto result = unpack_layer(source_of(whole.substr(0, size)), Whiteouts::literal, writer);
    EXPECT_EQ(result.has_value(), size == whole.size()) << size;
  }
  EXPECT_TRUE(unpack(whole.substr(0, 2048))) << "of a layer, the digest tells";
}

TEST_F(ArchiveReaderTest, AnImageThatIsCutOffIsNoRootFileSystem) {
  for (const char* const name : {"blobs/sha256/aa", "oci-layout"}) {
    const auto listing = list(archive({{.name = name, .content = "one"}}));
    ASSERT_FALSE(listing.has_value()) << name;
    EXPECT_THAT(listing.error().message, HasSubstr("cut off"));
  }
}

TEST_F(ArchiveReaderTest, TellsWhatAnArchiveHolds) {
  const std::string rootfs =
      archive({{.name = "./", .type = '5'}, {.name = "./usr/", .type = '5'}, {.name = "./usr/x"}});
  const std::string oci = archive({{.name = "blobs/sha256/aa", .content = "one"},
                                   {.name = "./oci-layout", .content = "{}"},
                                   {.name = "index.json", .content = "{}"},
                                   {.name = "manifest.json", .content = "[]"}});
  const std::string docker = archive({{.name = "a/layer.tar", .content = "one"},
                                      {.name = "b/layer.tar", .type = '2', .link = "../a/layer.tar"},
                                      {.name = "c/layer.tar", .type = '1', .link = "./a/layer.tar"},
                                      {.name = "manifest.json", .content = "[]"}});
  EXPECT_EQ(list(rootfs)->form, ArchiveForm::rootfs);
  EXPECT_EQ(list(archive({{.name = "hello", .content = "x"}}))->form, ArchiveForm::rootfs);
  EXPECT_EQ(list(oci)->form, ArchiveForm::oci);
  EXPECT_EQ(list(gzip(oci))->form, ArchiveForm::oci);
  EXPECT_TRUE(list(gzip(oci))->is_packed);
  const auto listing = list(docker);
  ASSERT_TRUE(listing.has_value());
  EXPECT_EQ(listing->form, ArchiveForm::docker);
  EXPECT_FALSE(listing->is_packed);
  ASSERT_EQ(listing->members.size(), 4U);
  EXPECT_EQ(listing->members[0].name, "a/layer.tar");
  EXPECT_EQ(docker.substr(listing->members[0].offset, listing->members[0].size), "one");
  EXPECT_EQ(listing->members[1].link, "../a/layer.tar");
  EXPECT_EQ(listing->members[2].link, "/a/layer.tar");
  EXPECT_EQ(docker.substr(listing->members[3].offset, listing->members[3].size), "[]");
}

TEST_F(ArchiveReaderTest, FindsContentBehindLongNames) {
  const std::string bytes =
      archive({{.name = "x", .content = "12345", .pax = pax_record("path", std::string(300, 'n'))},
               {.name = "manifest.json", .content = "[1]"}});
  const auto listing = list(bytes);
  ASSERT_TRUE(listing.has_value());
  ASSERT_EQ(listing->members.size(), 2U);
  EXPECT_EQ(bytes.substr(listing->members[0].offset, listing->members[0].size), "12345");
}

TEST_F(ArchiveReaderTest, RefusesAnArchiveThatCanBeReadInTwoWays) {
  const auto listing =
      list(archive({{.name = "manifest.json", .content = "[1]"}, {.name = "./manifest.json", .content = "[2]"}}));
  ASSERT_FALSE(listing.has_value());
  EXPECT_THAT(listing.error().message, HasSubstr("twice"));
}

TEST_F(ArchiveReaderTest, SeesTheFormOfAnArchiveWithManyMembers) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i <= kArchiveMembersMax; ++i) entries.push_back({.name = "app/" + std::to_string(i)});
  EXPECT_EQ(list(archive(entries))->form, ArchiveForm::rootfs);
  entries.push_back({.name = "bin/sh", .content = "x"});
  EXPECT_EQ(list(archive(entries))->form, ArchiveForm::rootfs);
  entries.back() = {.name = "manifest.json", .content = "[]"};
  const auto docker = list(archive(entries));
  ASSERT_FALSE(docker.has_value());
  EXPECT_THAT(docker.error().message, HasSubstr("has more than 10000 members"));
  entries.back() = {.name = "oci-layout", .content = "{}"};
  entries.push_back({.name = "./index.json", .content = "{}"});
  const auto oci = list(gzip(archive(entries)));
  ASSERT_FALSE(oci.has_value());
  EXPECT_THAT(oci.error().message, HasSubstr("has more than 10000 members"));
  entries.pop_back();
  EXPECT_THAT(list(archive(entries)).error().message, HasSubstr("cut off"));
}

TEST_F(ArchiveReaderTest, RefusesToListWhatIsNoArchive) {
  for (const std::string& bytes : {std::string(), std::string(1024, '\0'), std::string("#!/bin/sh\n"), gzip("x")}) {
    EXPECT_FALSE(list(bytes).has_value());
  }
}

TEST_F(ArchiveReaderTest, ExpandsUpToALimit) {
  const std::string plain(100'000, 'p');
  std::ofstream(folder_ / "packed") << gzip(plain);
  const auto expand = [&](std::uint64_t bytes_max) {
    const Fd from(::open((folder_ / "packed").c_str(), O_RDONLY | O_CLOEXEC));
    const Fd to(::open((folder_ / "plain").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    return expand_archive(from.get(), to.get(), bytes_max);
  };
  ASSERT_TRUE(expand(100'000));
  std::ostringstream text;
  text << std::ifstream(folder_ / "plain").rdbuf();
  EXPECT_EQ(text.str(), plain);
  const auto refused = expand(99'999);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("--max-size"));
}

}  // namespace
}  // namespace belljar
