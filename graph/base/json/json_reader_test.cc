#include "graph/base/json/json_reader.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/json/json_fields.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

std::string Nested(size_t depth, char open, const std::string& inner,
                   char close) {
  return absl::StrCat(std::string(depth, open), inner,
                      std::string(depth, close));
}

void ExpectRefused(const std::string& text, const std::string& says) {
  const auto json = ParseJson(text, "f.json");
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(ExitCodeOf(json.status()), ExitCode::kModel);
  EXPECT_THAT(std::string(json.status().message()), HasSubstr("f.json: "));
  EXPECT_THAT(std::string(json.status().message()), HasSubstr(says));
}

TEST(ParseJsonTest, ReadsWhatIsSound) {
  const auto json = ParseJson("{\"a\": [1, -2.5, null, \"x\"]}", "f.json");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->dump(), "{\"a\":[1,-2.5,null,\"x\"]}");
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth, '[', "", ']'), "f").ok());
}

TEST(ParseJsonTest, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,", "{\"a\":1}x", "\"\xff\"", "1e999",
                           "nan", "{1:2}", "\x01"}) {
    ExpectRefused(text, "no JSON at byte");
  }
}

TEST(ParseJsonTest, RefusesDepthBeforeItIsThere) {
  ExpectRefused(Nested(kMaxJsonDepth + 1, '[', "", ']'), "more than 32");
  ExpectRefused(std::string(10 << 20, '['), "more than 32");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  ExpectRefused(objects, "more than 32");
}

// A value of two bytes would be one of 16 to 150 in memory.
TEST(ParseJsonTest, RefusesMoreValuesThanItsSizeExplains) {
  std::string zeros = "[0";
  for (int i = 0; i < 100000; ++i) zeros += ",0";
  ExpectRefused(zeros + "]", "values in 200003 bytes");
  EXPECT_TRUE(ParseJson("[0,0,0,0,0,0,0,0,0,0,0]", "f.json").ok());
}

TEST(JsonFieldsTest, ChecksTypesAndRanges) {
  const auto json = *ParseJson(
      "{\"i\":7,\"big\":18446744073709551615,\"f\":1e300,\"n\":null,\"s\":"
      "\"x\","
      "\"b\":true,\"o\":{\"k\":1},\"l\":[1]}",
      "f");
  JsonFields good(json, "f.json");
  int64_t i = 0;
  std::string s;
  bool b = false;
  good.Integer("i", 0, 7, &i);
  good.Text("s", &s);
  good.Bool("b", &b);
  EXPECT_EQ(good.Object("o").size(), 1u);
  EXPECT_EQ(good.List("l").size(), 1u);
  ASSERT_TRUE(good.status().ok()) << good.status();
  EXPECT_EQ(i, 7);
  EXPECT_EQ(s, "x");
  EXPECT_TRUE(b);
  const auto error = [&](const auto& read) {
    JsonFields fields(json, "f.json");
    read(fields);
    return std::string(fields.status().message());
  };
  EXPECT_EQ(error([&](JsonFields& f) { f.Integer("i", 8, 9, &i); }),
            "f.json: i: expected a whole number from 8 to 9, found 7");
  EXPECT_EQ(error([&](JsonFields& f) { f.Integer("gone", 0, 9, &i); }),
            "f.json: gone: expected a whole number from 0 to 9, found nothing");
  for (const char* field : {"big", "f", "n", "s", "b", "o", "l"}) {
    EXPECT_THAT(
        error([&](JsonFields& f) { f.Integer(field, 0, INT64_MAX, &i); }),
        HasSubstr(absl::StrCat("f.json: ", field, ": expected a whole")));
  }
  EXPECT_EQ(error([&](JsonFields& f) { f.Text("n", &s); }),
            "f.json: n: expected a text, found null");
  EXPECT_EQ(error([&](JsonFields& f) { f.Bool("i", &b); }),
            "f.json: i: expected true or false, found 7");
  EXPECT_EQ(error([&](JsonFields& f) { f.Object("l"); }),
            "f.json: l: expected an object, found a list");
  EXPECT_EQ(error([&](JsonFields& f) { f.List("o"); }),
            "f.json: o: expected a list, found an object");
  EXPECT_EQ(i, 7);
  const nlohmann::json list = nlohmann::json::array();
  EXPECT_EQ(JsonFields(list, "f.json").status().message(),
            "f.json: expected an object, found a list");
}

}  // namespace
}  // namespace halftone
