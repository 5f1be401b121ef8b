#include "kernels/functors/tree_sum.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace halftone {
namespace functors {
namespace {

struct Terms {
  std::vector<float> terms;

  float At(int i) const { return terms[i]; }
  float Add(float a, float b) const { return a + b; }
};

float Sum(std::vector<float> terms) {
  const int count = static_cast<int>(terms.size());
  return SumInTree<float>(Terms{std::move(terms)}, count);
}

// Sums of which each order gives other bits.
std::vector<float> SomeTerms(int count) {
  std::vector<float> terms;
  uint32_t random = 1;
  for (int i = 0; i < count; ++i) {
    random = random * 1664525u + 1013904223u;
    terms.push_back(static_cast<float>(random >> 8) * (i % 3 == 0 ? -1 : 1) *
                    (i % 5 == 0 ? 1e-4f : 1.0f));
  }
  return terms;
}

TEST(TreeSum, AddsNeighboursFirst) {
  EXPECT_EQ(Sum({5}), 5);
  // 1 + 2^-24 is 1.
  const float tiny = 5.9604645e-08f;
  EXPECT_EQ(Sum({1, tiny, tiny, tiny}), 1 + 2 * tiny);
  EXPECT_EQ(Sum({tiny, tiny, tiny, 1}), 1 + 2 * tiny);
  EXPECT_EQ(Sum({tiny, tiny, 1, tiny}), 1 + 2 * tiny);
  EXPECT_EQ(Sum({1, tiny, 1, tiny}), 2);
  // Not a power of two: as with zeros behind.
  EXPECT_EQ(Sum({1, tiny, tiny}), Sum({1, tiny, tiny, 0}));
}

// Ranks that add aligned groups of terms, and then each other's sums.
TEST(TreeSum, IsThatOfItsGroups) {
  const std::vector<float> terms = SomeTerms(64);
  const float all = Sum(terms);
  float in_order = 0;
  for (float term : terms) in_order += term;
  EXPECT_NE(in_order, all);
  for (int ranks = 1; ranks <= 64; ranks *= 2) {
    const int own = 64 / ranks;
    std::vector<float> sums;
    for (int r = 0; r < ranks; ++r) {
      sums.push_back(
          Sum({terms.begin() + r * own, terms.begin() + (r + 1) * own}));
    }
    EXPECT_EQ(Sum(sums), all) << ranks;
  }
}

TEST(TreeSum, OfStatisticsIsThatOfItsGroups) {
  const std::vector<float> numbers = SomeTerms(48);
  float means[16], variances[16], counts[16];
  for (int i = 0; i < 16; ++i) {
    means[i] = numbers[3 * i];
    variances[i] = numbers[3 * i + 1] < 0 ? 1.0f : numbers[3 * i + 1];
    counts[i] = i % 4 == 3 ? 0.0f : static_cast<float>(3 + i);
  }
  const auto of = [&](int begin, int count) {
    return SumInTree<Statistics>(
        RankStatsTree{
            {means + begin, variances + begin, counts + begin, 1, count}, 0},
        count);
  };
  const Statistics all = of(0, 16);
  for (int ranks = 1; ranks <= 16; ranks *= 2) {
    float m[16], v[16], n[16];
    for (int r = 0; r < ranks; ++r) {
      const Statistics own = of(r * 16 / ranks, 16 / ranks);
      m[r] = own.mean, v[r] = own.variance, n[r] = own.count;
    }
    const Statistics found =
        SumInTree<Statistics>(RankStatsTree{{m, v, n, 1, ranks}, 0}, ranks);
    EXPECT_EQ(found.mean, all.mean) << ranks;
    EXPECT_EQ(found.variance, all.variance) << ranks;
    EXPECT_EQ(found.count, all.count) << ranks;
  }
}

}  // namespace
}  // namespace functors
}  // namespace halftone
