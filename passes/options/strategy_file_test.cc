#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "passes/options/options.h"
#include "passes/options/strategy_fields.h"

namespace halftone {
namespace passes {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(ReadStrategyTest, ErrorsNameFileLineAndNearestField) {
  const absl::Status unknown =
      ParseStrategy("amp {\n levl: 'O1' }", "s.pbtxt").status();
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("s.pbtxt:2"));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("level"));
  EXPECT_EQ(ExitCodeOf(unknown), ExitCode::kModel);
  EXPECT_FALSE(ReadStrategy("no/such/file.pbtxt").ok());
  // Also one in brackets, and without a word of the parser's own.
  testing::internal::CaptureStderr();
  const absl::Status bracketed =
      ParseStrategy("lr { base: 0.1 }\n[amp] { level: 'O1' }", "s.pbtxt")
          .status();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(std::string(bracketed.message()),
              HasSubstr("s.pbtxt:2:2: unknown field \"[amp]\" in Strategy"));
  EXPECT_EQ(ExitCodeOf(bracketed), ExitCode::kModel);
}

TEST(ReadStrategyTest, TakesAFileWithAByteOrderMark) {
  const auto read =
      ParseStrategy("\xef\xbb\xbf\namp { level: 'O1' }", "s.pbtxt");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->strategy.amp().level(), "O1");
  EXPECT_EQ(read->lines.at("amp.level"), 2);
}

TEST(StrategyPathsTest, AreLeaves) {
  const std::vector<std::string> paths = StrategyPaths();
  EXPECT_THAT(paths, Contains("amp.loss_scaling.incr_ratio"));
  EXPECT_THAT(paths, Contains("optimizer.group"));
  EXPECT_THAT(paths, Not(Contains("amp")));
  EXPECT_TRUE(LeavesGraphAlone("train.epochs"));
  EXPECT_TRUE(LeavesGraphAlone("lr.base"));
  EXPECT_FALSE(LeavesGraphAlone("lr.cosine.min_ratio"));
  EXPECT_FALSE(LeavesGraphAlone("amp.level"));
}

TEST(GraphFieldsTest, AreWhatAProgramIsCompiledBy) {
  const auto fields = [](const std::string& text) {
    const auto read = ParseStrategy(text, "s.pbtxt");
    EXPECT_TRUE(read.ok()) << read.status();
    return GraphFieldsOf(read->strategy).ShortDebugString();
  };
  EXPECT_EQ(fields(R"(amp { level: "O1" } lr { base: 0.1 }
                      train { epochs: 3 augment { horizontal_flip: 0.5 } })"),
            fields(R"(amp { level: "O1" } lr { } train { seed: 7 })"));
  EXPECT_NE(fields("amp { level: \"O1\" }"), fields("amp { level: \"O2\" }"));
  EXPECT_EQ(fields("amp { custom_black_list: ['relu', 'mul', 'relu'] }"),
            fields("amp { custom_black_list: ['mul', 'relu'] }"));
}

}  // namespace
}  // namespace passes
}  // namespace halftone
