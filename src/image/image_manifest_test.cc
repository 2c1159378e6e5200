#include "image/image_manifest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/errors.h"

namespace belljar {
namespace {

using testing::HasSubstr;

const std::string kDigestA = std::string(64, 'a');
const std::string kDigestB = std::string(64, 'b');
constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json";

std::string entry(std::string_view type, const std::string& digest, std::string_view more = "") {
  return fmt::format(R"({{"mediaType":"{}","digest":"sha256:{}","size":7{}}})", type, digest, more);
}

std::string index(std::initializer_list<std::string> entries) {
  std::string text;
  for (const std::string& each : entries) {
    if (!text.empty()) text += ',';
    text += each;
  }
  return fmt::format(R"({{"schemaVersion":2,"manifests":[{}]}})", text);
}

std::string platform(std::string_view os, std::string_view architecture) {
  return fmt::format(R"(,"platform":{{"os":"{}","architecture":"{}"}})", os, architecture);
}

template <typename T>
std::string message(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  if (result) return "";
  EXPECT_EQ(result.error().code, ErrorCode::bad_image);
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  return result.error().message;
}

TEST(ImageManifestTest, TakesOneKindOfDigest) {
  EXPECT_EQ(parse_digest("sha256:" + kDigestA).value_or(""), kDigestA);
  for (const std::string& odd : {std::string(), kDigestA, "sha512:" + kDigestA, "sha256:" + kDigestA + "a",
                                 "sha256:" + kDigestA.substr(1), "sha256:" + std::string(64, 'A'),
                                 "sha256:../" + std::string(61, 'a'), "sha256:" + std::string(63, 'a') + "\n"}) {
    EXPECT_THAT(message(parse_digest(odd)), HasSubstr("not a digest"));
  }
}

TEST(ImageManifestTest, ChoosesTheImageForThisMachine) {
  const auto one = choose_from_index(index({entry(kOciManifest, kDigestA)}));
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->blob, (BlobName{.digest = kDigestA, .size = 7}));
  EXPECT_FALSE(one->is_index);
  const auto several = choose_from_index(index({entry(kOciManifest, kDigestB, platform("linux", "arm64")),
                                                entry(kOciManifest, kDigestA, platform("linux", "amd64")),
                                                entry(kOciManifest, kDigestB, platform("unknown", "unknown"))}));
  ASSERT_TRUE(several.has_value());
  EXPECT_EQ(several->blob.digest, kDigestA);
  EXPECT_TRUE(choose_from_index(index({entry(kOciIndex, kDigestA)}))->is_index);
  const std::string tags =
      index({entry(kOciManifest, kDigestA, R"(,"annotations":{"org.opencontainers.image.ref.name":"a"})"),
             entry(kOciManifest, kDigestA, R"(,"annotations":{"org.opencontainers.image.ref.name":"b"})")});
  EXPECT_TRUE(choose_from_index(tags).has_value());
}

TEST(ImageManifestTest, RefusesToGuessAnImage) {
  const std::string two =
      index({entry(kOciManifest, kDigestA, R"(,"annotations":{"org.opencontainers.image.ref.name":"one\n"})"),
             entry(kOciManifest, kDigestB)});
  EXPECT_THAT(message(choose_from_index(two)), HasSubstr("more than one image"));
  EXPECT_THAT(message(choose_from_index(index({entry(kOciManifest, kDigestA, platform("linux", "arm64"))}))),
              HasSubstr("linux/arm64"));
  EXPECT_THAT(message(choose_from_index(index({entry("text/plain", kDigestA)}))), HasSubstr("text/plain"));
  EXPECT_THAT(message(choose_from_index(index({}))), HasSubstr("no image"));
}

TEST(ImageManifestTest, RefusesOddIndexes) {
  for (const std::string_view text :
       {"", "[]", "null", "{", R"({"manifests":{}})", R"({"manifests":[1]})", R"({"manifests":[{}]})",
        R"({"manifests":[{"mediaType":"a","digest":1,"size":1}]})", R"({"manifests":[],"manifests":[]})"}) {
    EXPECT_FALSE(message(choose_from_index(text)).empty()) << text;
  }
  const std::string negative =
      fmt::format(R"({{"manifests":[{{"mediaType":"{}","digest":"sha256:{}","size":-1}}]}})", kOciManifest, kDigestA);
  EXPECT_THAT(message(choose_from_index(negative)), HasSubstr("size"));
  EXPECT_THAT(message(choose_from_index(std::string(kManifestTextBytesMax + 1, ' '))), HasSubstr("the image's index"));
  EXPECT_FALSE(message(choose_from_index(std::string(100'000, '['))).empty());
}

std::string manifest(std::string_view config_type, std::initializer_list<std::string_view> layer_types) {
  std::string layers;
  for (const std::string_view type : layer_types) {
    if (!layers.empty()) layers += ',';
    layers += entry(type, kDigestB);
  }
  return fmt::format(R"({{"schemaVersion":2,"config":{},"layers":[{}]}})", entry(config_type, kDigestA), layers);
}

TEST(ImageManifestTest, ReadsManifests) {
  const auto read = parse_oci_manifest(
      manifest("application/vnd.oci.image.config.v1+json",
               {"application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+zstd",
                "application/vnd.docker.image.rootfs.diff.tar.gzip"}));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->config.digest, kDigestA);
  ASSERT_EQ(read->layers.size(), 3U);
  EXPECT_EQ(read->layers[2].digest, kDigestB);
}

TEST(ImageManifestTest, RefusesWhatIsNoImage) {
  EXPECT_THAT(message(parse_oci_manifest(manifest("application/vnd.oci.empty.v1+json", {}))), HasSubstr("no image"));
  EXPECT_THAT(message(parse_oci_manifest(manifest("application/vnd.oci.image.config.v1+json", {"text/plain"}))),
              HasSubstr("text/plain"));
  EXPECT_THAT(message(parse_oci_manifest(R"({"schemaVersion":1})")), HasSubstr("schemaVersion"));
  EXPECT_THAT(message(parse_oci_manifest(R"({"schemaVersion":2})")), HasSubstr("config is missing"));
  std::string many = manifest("application/vnd.oci.image.config.v1+json", {"application/vnd.oci.image.layer.v1.tar"});
  std::string layers;
  for (std::size_t i = 0; i <= kLayersMax; ++i)
    layers += entry("application/vnd.oci.image.layer.v1.tar", kDigestB) + ",";
  many.insert(many.find("\"layers\":[") + 10, layers);
  EXPECT_THAT(message(parse_oci_manifest(many)), HasSubstr("more than 256"));
}

TEST(ImageManifestTest, ReadsDockerManifests) {
  const auto read =
      parse_docker_manifest(R"([{"Config":"c.json","RepoTags":null,"Layers":["a/layer.tar","b/layer.tar"]}])");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->config, "c.json");
  EXPECT_EQ(read->layers, (std::vector<std::string>{"a/layer.tar", "b/layer.tar"}));
  EXPECT_THAT(message(parse_docker_manifest("[]")), HasSubstr("0 images"));
  EXPECT_THAT(message(parse_docker_manifest("[{},{}]")), HasSubstr("2 images"));
  EXPECT_THAT(message(parse_docker_manifest("{}")), HasSubstr("not a list"));
  EXPECT_THAT(message(parse_docker_manifest("[1]")), HasSubstr("Config"));
  EXPECT_THAT(message(parse_docker_manifest("nonsense")), HasSubstr("manifest.json: line 1"));
}

std::string config(std::string_view inner, std::string_view more = "") {
  return fmt::format(
      R"({{"os":"linux","architecture":"amd64","config":{},"rootfs":{{"type":"layers","diff_ids":["sha256:{}"]}}{}}})",
      inner, kDigestA, more);
}

TEST(ImageManifestTest, ReadsConfigurations) {
  const auto read = parse_oci_config(config(
      R"({"Env":["PATH=/bin","EMPTY=","EQUALS=a=b"],"Entrypoint":["python3"],"Cmd":["-c","x"],"WorkingDir":"srv//app/","User":"app"})"));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->diff_ids, std::vector<std::string>{kDigestA});
  EXPECT_EQ(read->config.environment,
            (std::vector<EnvironmentVariable>{{"PATH", "/bin"}, {"EMPTY", ""}, {"EQUALS", "a=b"}}));
  EXPECT_EQ(read->config.entrypoint, std::vector<std::string>{"python3"});
  EXPECT_EQ(read->config.command, (std::vector<std::string>{"-c", "x"}));
  EXPECT_EQ(read->config.working_folder, "/srv/app");
  EXPECT_EQ(read->config.user, "app");
  EXPECT_TRUE(parse_oci_config(config("null")).has_value());
  EXPECT_TRUE(parse_oci_config(config(R"({"Env":null,"Cmd":null,"Entrypoint":null,"WorkingDir":""})")).has_value());
}

TEST(ImageManifestTest, RefusesOddConfigurations) {
  EXPECT_THAT(message(parse_oci_config(config(R"({"Env":["NOVALUE"]})"))), HasSubstr("Env"));
  EXPECT_THAT(message(parse_oci_config(config(R"({"Env":["=x"]})"))), HasSubstr("Env"));
  EXPECT_THAT(message(parse_oci_config(config(R"({"Env":["A\u0000=x"]})"))), HasSubstr("Env"));
  EXPECT_THAT(message(parse_oci_config(config(R"({"Env":["A=x\u0000y"]})"))), HasSubstr("Env"));
  EXPECT_THAT(message(parse_oci_config(config(R"({"Cmd":"sh"})"))), HasSubstr("Cmd"));
  EXPECT_THAT(message(parse_oci_config(config(R"({"Cmd":["a\u0000b"]})"))), HasSubstr("Cmd"));
  EXPECT_THAT(message(parse_oci_config(config(R"({"WorkingDir":"/a/../../etc"})"))), HasSubstr("WorkingDir"));
  EXPECT_THAT(message(parse_oci_config(config(R"({"User":5})"))), HasSubstr("User"));
  EXPECT_THAT(message(parse_oci_config(R"({"os":"linux","architecture":"arm64","rootfs":{"diff_ids":[]}})")),
              HasSubstr("linux/arm64"));
  EXPECT_THAT(message(parse_oci_config(R"({"os":"windows","rootfs":{}})")), HasSubstr("windows"));
  EXPECT_THAT(message(parse_oci_config(R"({"rootfs":{"diff_ids":["x"]}})")), HasSubstr("digest"));
  EXPECT_THAT(message(parse_oci_config("{}")), HasSubstr("rootfs"));
}

}  // namespace
}  // namespace belljar
