#include "runtime/train/step_totals.h"

#include <vector>

#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

constexpr float kTiny = 5.9604645e-08f;  // 1 + kTiny is 1 in f32

std::vector<double> Of(int64_t group, const std::vector<float>& steps) {
  StepTotals totals(group);
  for (float step : steps) totals.Add({step, 1});
  return totals.Totals();
}

TEST(StepTotals, OfOneStepAtATimeAreF64) {
  EXPECT_EQ(Of(1, {1, kTiny}), (std::vector<double>{1 + double{kTiny}, 2}));
  EXPECT_TRUE(Of(1, {}).empty());
}

TEST(StepTotals, OfGroupsAreTreesOfF32) {
  EXPECT_EQ(Of(2, {1, kTiny})[0], 1);
  EXPECT_EQ(Of(4, {kTiny, kTiny, 1, 0})[0], 1 + 2 * double{kTiny});
  EXPECT_EQ(Of(4, {1, kTiny, kTiny, 0})[0], 1);
  // Two groups.
  EXPECT_EQ(Of(2, {1, kTiny, kTiny, 0})[0], 1 + double{kTiny});
}

// What four ranks add in two steps, two ranks add in four: the tree goes on.
TEST(StepTotals, GoOnWhereTheRanksTreesEnd) {
  const std::vector<float> shards = {0.1f, 0.7f, 1e-7f, 3.3f,
                                     5.1f, 0.3f, 2e-6f, 0.9f};
  const auto pairs = [](const std::vector<float>& x) {
    std::vector<float> sums;
    for (size_t i = 0; i < x.size(); i += 2) sums.push_back(x[i] + x[i + 1]);
    return sums;
  };
  const double one = Of(8, shards)[0];
  EXPECT_EQ(Of(4, pairs(shards))[0], one);
  EXPECT_EQ(Of(2, pairs(pairs(shards)))[0], one);
  EXPECT_EQ(Of(1, pairs(pairs(pairs(shards))))[0], one);
  // Shards that are missing at the end count nothing.
  EXPECT_EQ(Of(8, {0.1f, 0.7f, 1e-7f})[0],
            Of(4, {0.1f + 0.7f, 1e-7f + 0.0f})[0]);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
