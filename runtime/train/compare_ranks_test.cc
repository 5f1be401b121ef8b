#include "runtime/train/compare_ranks.h"

#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using Hashes = std::vector<std::vector<uint64_t>>;

void ExpectFound(const Hashes& hashes, int rank, int cell, int cells,
                 bool outvoted = true) {
  const auto found = FirstDifference(hashes);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank, rank);
  EXPECT_EQ(found->cell, cell);
  EXPECT_EQ(found->cells, cells);
  EXPECT_EQ(found->outvoted, outvoted);
}

TEST(FirstDifferenceTest, NoneOfEqualRanks) {
  EXPECT_FALSE(FirstDifference({{1, 2}}).has_value());
  EXPECT_FALSE(FirstDifference({{1, 2}, {1, 2}, {1, 2}}).has_value());
  EXPECT_FALSE(FirstDifference({{}, {}}).has_value());
}

TEST(FirstDifferenceTest, TheRankThatMostDisagreeWith) {
  ExpectFound({{1, 2, 3}, {1, 9, 3}, {1, 2, 3}}, 1, 1, 1);
  ExpectFound({{7, 2, 8}, {1, 2, 3}, {1, 2, 3}}, 0, 0, 2);
  ExpectFound({{1, 2, 3}, {1, 2, 3}, {1, 2, 4}, {1, 2, 3}}, 2, 2, 1);
}

TEST(FirstDifferenceTest, RankZeroCountsWhereNoValueIsThatOfMost) {
  ExpectFound({{1, 2}, {1, 3}}, 1, 1, 1, false);
  ExpectFound({{5}, {5}, {6}, {6}}, 2, 0, 1, false);
  ExpectFound({{5}, {6}, {7}}, 1, 0, 1, false);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
