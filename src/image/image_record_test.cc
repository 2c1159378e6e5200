#include "image/image_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/errors.h"

namespace belljar {
namespace {

using testing::HasSubstr;

ImageRecord sample() {
  ImageRecord record;
  record.tree = std::string(64, 'c');
  record.source = "/images/\x1b[31mred\n.tar";
  record.form = "OCI archive";
  record.manifest_digest = std::string(64, 'a');
  record.config_digest = std::string(64, 'b');
  record.layers = {{.digest = std::string(64, '1'), .diff_id = std::string(64, '2'), .size = 77}};
  record.config = {.environment = {{"PATH", "/bin"}, {"E", "\"=\\"}},
                   .working_folder = "/srv",
                   .user = "app:docker",
                   .uid = 1000,
                   .gid = 65535,
                   .entrypoint = {"python3"},
                   .command = {"-c", ""}};
  record.parts = {{.name = "bin", .kind = ImagePart::Kind::link, .target = "usr/bin"},
                  {.name = "mnt", .kind = ImagePart::Kind::empty_folder, .target = {}},
                  {.name = "usr", .kind = ImagePart::Kind::folder, .target = {}}};
  record.counts = {
      .entries = 5, .bytes = UINT64_MAX, .special_files = 1, .set_id_bits = 2, .attributes = 3, .foreign_ids = 4};
  record.loaded_s = 1'700'000'000;
  record.identity = "1 2 3";
  return record;
}

TEST(ImageRecordTest, ComesBackAsItWas) {
  const auto read = record_from_json(record_to_json(sample()));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, sample());
}

TEST(ImageRecordTest, RefusesDamage) {
  const std::string good = record_to_json(sample());
  for (std::size_t length = 0; length < good.size(); length += 7) {
    EXPECT_FALSE(record_from_json(good.substr(0, length)).has_value());
  }
  const auto changed = [&good](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto read = record_from_json(text);
    EXPECT_FALSE(read.has_value()) << to;
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(changed("\"format\":1", "\"format\":2"), HasSubstr("another version"));
  EXPECT_THAT(changed(std::string(64, 'c'), "../../../etc"), HasSubstr("no digest"));
  EXPECT_THAT(changed("\"name\":\"usr\"", "\"name\":\"..\""), HasSubstr("no sound name"));
  EXPECT_THAT(changed("\"name\":\"usr\"", "\"name\":\"a/b\""), HasSubstr("no sound name"));
  EXPECT_THAT(changed("\"kind\":\"folder\"", "\"kind\":\"door\""), HasSubstr("no sound name"));
  EXPECT_THAT(changed("\"uid\":1000", "\"uid\":70000"), HasSubstr("out of range"));
  EXPECT_THAT(changed("\"uid\":1000", "\"uid\":-1"), HasSubstr("uid"));
}

}  // namespace
}  // namespace belljar
