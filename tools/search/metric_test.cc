#include "tools/search/metric.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::HasSubstr;

const Program& WithTop1() {
  static const Program& program = *[] {
    auto* made = new Program;
    made->name = "net";
    made->metrics.push_back({"top1"});
    return made;
  }();
  return program;
}

Tolerance Points(double most) { return {{"top1", Metric::Kind::kShare}, most}; }

TEST(ParseToleranceTest, MetricsLossAndMeasures) {
  const Program& program = WithTop1();
  const struct {
    const char* text;
    Metric::Kind kind;
  } kCases[] = {{"top1:0.2", Metric::Kind::kShare},
                {"loss:0.2", Metric::Kind::kLoss},
                {"error:0.2", Metric::Kind::kError},
                {"ulps:0.2", Metric::Kind::kError}};
  for (const auto& c : kCases) {
    const auto tolerance = ParseTolerance(c.text, program, /*values=*/true);
    ASSERT_TRUE(tolerance.ok()) << tolerance.status();
    EXPECT_EQ(tolerance->metric.kind, c.kind) << c.text;
    EXPECT_EQ(tolerance->most, 0.2);
  }
  EXPECT_THAT(
      std::string(ParseTolerance("error:1", program, false).status().message()),
      HasSubstr("no metric \"error\""));
  EXPECT_THAT(
      std::string(ParseTolerance("topl:1", program, true).status().message()),
      HasSubstr("nearest: top1; measures of values"));
}

TEST(JudgeTest, HigherIsBetterOfSharesOnly) {
  const Judge shares = *Judge::By(Points(1), {{90.0}});
  EXPECT_FALSE(shares.Of({{89.0}}).misses);
  EXPECT_TRUE(shares.Of({{88.9}}).misses);
  EXPECT_FALSE(shares.Of({{99.0}}).misses);
  const Judge losses =
      *Judge::By({{"loss", Metric::Kind::kLoss}, 0.1}, {{0.5}});
  EXPECT_TRUE(losses.Of({{0.7}}).misses);
  EXPECT_FALSE(losses.Of({{0.1}}).misses);
}

TEST(JudgeTest, TheMeanCountsAndRunsThatDisagreeAreFlaky) {
  const Judge judge = *Judge::By(Points(1), {{90.0}});
  const Verdict verdict = judge.Of({{88.0}, {88.5}, {89.5}});
  EXPECT_TRUE(verdict.misses);
  EXPECT_NEAR(*verdict.value, 88.667, 1e-3);
  EXPECT_EQ(verdict.runs, 3);
  EXPECT_EQ(verdict.missing, 2);
  EXPECT_TRUE(verdict.is_flaky());
  EXPECT_FALSE(judge.Of({{88.0}, {88.5}}).is_flaky());
  const Verdict diverged = judge.Of({{90.0}, std::nullopt});
  EXPECT_TRUE(diverged.misses);
  EXPECT_FALSE(diverged.value.has_value());
}

// Reference runs 89, 90, 91: standard deviation 1. One run's mean differs from
// theirs by a standard error of sqrt(1 + 1/3) = 1.155, two runs' by 0.913.
TEST(JudgeTest, RepeatsNearTheBoundOnly) {
  const Judge judge = *Judge::By(Points(5), {{89.0}, {90.0}, {91.0}});
  EXPECT_TRUE(judge.IsDecided({{85.0 - 2.4}}));
  EXPECT_FALSE(judge.IsDecided({{85.0 - 2.2}}));
  EXPECT_FALSE(judge.IsDecided({{85.0 + 2.2}}));
  EXPECT_TRUE(judge.IsDecided({{85.0 - 2.2}, {85.0 - 2.2}}));
  // Where its own runs differ more, these count.
  EXPECT_FALSE(judge.IsDecided({{85.0 - 9.0}, {85.0 + 3.0}}));
  EXPECT_TRUE(judge.IsDecided({{85.0}, std::nullopt}));
}

TEST(JudgeTest, NothingIsKnownOfTheNoiseOfOneRun) {
  EXPECT_TRUE(Judge::By(Points(5), {{90.0}})->IsDecided({{85.0}}));
  EXPECT_FALSE(Judge::By(Points(5), {{90.0}, std::nullopt}).has_value());
}

}  // namespace
}  // namespace tools
}  // namespace halftone
