#include "tools/report/fail_on.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/report/lint_report.h"
#include "tools/report/testing/test_models.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> FailuresOf(const std::string& conditions) {
  FailOn fail_on;
  const absl::Status added = fail_on.Add(conditions);
  EXPECT_TRUE(added.ok()) << added;
  return fail_on.Failures(FixedFacts(Convnet()));
}

TEST(FailOn, TotalsAgainstNumbers) {
  EXPECT_THAT(FailuresOf("standalone>0, cast_bytes>1e9"), IsEmpty());
  EXPECT_THAT(
      FailuresOf("casts_down >= 8,peak_bytes>4e6, folded==3"),
      ElementsAre("casts_down >= 8: it is 8", "peak_bytes>4e6: it is 5000000",
                  "folded==3: it is 3"));
  EXPECT_THAT(FailuresOf("folded!=3, low_ops<12, ops<=15"),
              ElementsAre("ops<=15: it is 15"));
  // The short name of a total per step.
  EXPECT_EQ(FailuresOf("cast_bytes>0").size(), 1);
  EXPECT_EQ(FailuresOf("cast_bytes_per_step>0").size(), 1);
}

TEST(FailOn, NotesByCode) {
  EXPECT_THAT(FailuresOf("lint:P*"), IsEmpty());
  EXPECT_THAT(FailuresOf("lint:D*, lint:D8"),
              ElementsAre(StartsWith("lint:D*: D8: conv1 (1 channel)"),
                          StartsWith("lint:D8: D8: conv1")));
  // What is said at no compile counts, too.
  EXPECT_THAT(FailuresOf("lint:T1"),
              ElementsAre(HasSubstr("cpu multiplies f16 in f32")));
}

TEST(FailOn, WhatDoesNotParse) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "--fail-on : expected a total with what it must not be"},
      {"standalone", "--fail-on standalone: expected a total"},
      {"standalone>", "--fail-on standalone>: expected a total"},
      {"standalon>0",
       "no total is called \"standalon\"; nearest: standalone (all: "},
      {"standalone=>0", "expected one of < <= > >= == !=, found =>"},
      {"standalone>x", "expected a number behind >, found \"x\""},
      {"standalone>nan", "expected a number behind >, found \"nan\""},
      {"lint:Q*", "--fail-on lint:Q*: no note's code matches Q*"},
      {"standalone>0,,", "--fail-on : expected a total"}};
  for (const auto& [text, message] : cases) {
    FailOn fail_on;
    EXPECT_THAT(std::string(fail_on.Add(text).message()), HasSubstr(message))
        << text;
  }
}

TEST(LintReport, RowsWithTheirLines) {
  const std::string text = LintText(FixedFacts(Convnet()));
  EXPECT_THAT(text, HasSubstr("code  models/mnist_convnet.pbtxt  what\n"));
  EXPECT_THAT(text,
              ::testing::ContainsRegex("\nD8    :[0-9]+ .*conv1 \\(1 ch"));
  EXPECT_THAT(text, HasSubstr("\nT1 "));
  EXPECT_THAT(text, HasSubstr("2 findings; what each means: halftone explain"));
  const CompiledModel plain = CompileConvnet({{"amp.level", "O0", "--level"}});
  EXPECT_EQ(LintText(FixedFacts(plain)), "lint     nothing to say\n");
}

TEST(LintReport, Json) {
  const auto json =
      nlohmann::json::parse(LintJson(FixedFacts(Convnet())), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["findings"].size(), 2);
  EXPECT_EQ(json["findings"][0]["code"], "D8");
  EXPECT_EQ(json["findings"][0]["ops"][0], "conv1");
  EXPECT_GT(json["findings"][0]["line"], 1);
  EXPECT_EQ(json["totals"]["standalone"], 0);
}

}  // namespace
}  // namespace tools
}  // namespace halftone
