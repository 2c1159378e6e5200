#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace belljar {
namespace {

using testing::HasSubstr;

TEST(ParseJson, ReadsAndKeepsTheOrderOfMembers) {
  const auto json = parse_json(R"({"z": [1, 2.5, "x", null, true], "a": {}})");
  ASSERT_TRUE(json);
  EXPECT_EQ(dump_json(*json), R"({"z":[1,2.5,"x",null,true],"a":{}})");
}

TEST(ParseJson, RefusesWhatIsNotJson) {
  for (const char* bad : {"", " ", "{", "[1,]", "{\"a\":1,}", "nan", "NaN", "Infinity", "01", "1e999", "\"\\ud800\"",
                          "'a'", "{\"a\":1} x", "\xEF\xBB\xBF", "// c\n1", "\"\xFF\"", "\"a\nb\"", "{1:2}", "truth"}) {
    EXPECT_FALSE(parse_json(bad)) << bad;
  }
}

TEST(ParseJson, SaysWhere) {
  const auto json = parse_json("{\n  \"a\": tru\n}");
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().line, 2u);
  EXPECT_EQ(json.error().what, "not valid JSON");
}

TEST(ParseJson, RefusesDoubledKeysAtAnyLevel) {
  EXPECT_FALSE(parse_json(R"({"a":1,"a":2})"));
  const auto inner = parse_json(R"({"x":[{"k":1,"\u006b":2}]})");
  ASSERT_FALSE(inner);
  EXPECT_THAT(inner.error().what, HasSubstr("\"k\" is there twice"));
  EXPECT_TRUE(parse_json(R"({"a":{"a":1},"b":{"a":1}})"));
}

TEST(ParseJson, HoldsItsBounds) {
  EXPECT_TRUE(parse_json("[[1]]", {.depth_max = 2}));
  EXPECT_FALSE(parse_json("[[[1]]]", {.depth_max = 2}));
  EXPECT_TRUE(parse_json("[\"[[[[\\\"[[\"]", {.depth_max = 2}));
  EXPECT_FALSE(parse_json("[1,2]", {.bytes_max = 4}));
  EXPECT_FALSE(parse_json(R"({"a":1,"b":2,"c":3})", {.members_max = 2}));
  EXPECT_FALSE(parse_json(std::string(500000, '[')));
  EXPECT_FALSE(parse_json(std::string(100000, '[') + std::string(100000, ']')));
}

TEST(DumpJson, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(dump_json(Json("a\xFF"
                           "b")),
            "\"a\xEF\xBF\xBD"
            "b\"");
  EXPECT_EQ(dump_json(Json{{"\xC3", "\xED\xA0\x80"}}).find('\xED'), std::string::npos);
}

TEST(DumpJson, EscapesWhatATerminalWouldObey) {
  const std::string text =
      "\x1b[2J\x7f\xC2\x9d"
      "52\xE2\x80\xAE \xC3\xA9";
  const std::string dumped = dump_json(Json(text));
  EXPECT_EQ(dumped, "\"\\u001b[2J\\u007f\\u009d52\\u202e \xC3\xA9\"");
  EXPECT_EQ(*parse_json(dumped), Json(text));
}

TEST(DumpJson, WritesNullForWhatJsonCanNotSay) {
  EXPECT_EQ(dump_json(Json(std::nan(""))), "null");
  EXPECT_EQ(dump_json(Json(HUGE_VAL)), "null");
}

TEST(PutBytes, HasBase64BesideWhatIsNotUtf8) {
  const std::pair<std::string, std::string> cases[] = {
      {"\xFF", "/w=="}, {"\xFF\xFF", "//8="}, {"\xFF\xFF\xFF", "////"}, {"\xFFman", "/21hbg=="}};
  for (const auto& [bytes, expected] : cases) {
    Json object = Json::object();
    put_bytes(object, "path", bytes);
    EXPECT_EQ(object["path_base64"], expected);
  }
  Json object = Json::object();
  put_bytes(object, "path", "caf\xC3\xA9");
  EXPECT_EQ(dump_json(object), "{\"path\":\"caf\xC3\xA9\"}");
}

TEST(DumpJson, PrunesWhatIsTooDeep) {
  Json json = 1;
  for (int i = 0; i < 70; ++i) json = Json{{"k", std::move(json)}};
  const auto again = parse_json(dump_json(json));
  ASSERT_TRUE(again);
  EXPECT_THAT(dump_json(json), HasSubstr("{\"k\":null}"));
}

}  // namespace
}  // namespace belljar
