#include "tools/search/smallest_set.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

bool Contains(const std::vector<int>& members, int member) {
  return std::binary_search(members.begin(), members.end(), member);
}

TEST(SmallestSetTest, NothingIsNeeded) {
  int asked = 0;
  const auto found = SmallestSet(100, [&](const std::vector<int>& members) {
    ++asked;
    EXPECT_THAT(members, IsEmpty());
    return true;
  });
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, IsEmpty());
  EXPECT_EQ(asked, 1);
}

TEST(SmallestSetTest, OneOfAHundredTakesNineQuestions) {
  for (int needed = 0; needed < 100; ++needed) {
    int asked = 0;
    const auto found = SmallestSet(100, [&](const std::vector<int>& members) {
      ++asked;
      return Contains(members, needed);
    });
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(*found, ElementsAre(needed));
    EXPECT_LE(asked, 9);
  }
}

TEST(SmallestSetTest, FindsRandomSetsWithinItsBoundAndAsksNothingTwice) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int n = 1 + random() % 200, k = random() % std::min(n, 8);
    std::set<int> needed;
    while (static_cast<int>(needed.size()) < k) needed.insert(random() % n);
    std::set<std::vector<int>> asked;
    const auto found = SmallestSet(n, [&](const std::vector<int>& members) {
      EXPECT_TRUE(asked.insert(members).second);
      return std::all_of(needed.begin(), needed.end(),
                         [&](int i) { return Contains(members, i); });
    });
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(std::set<int>(found->begin(), found->end()), needed);
    EXPECT_LE(asked.size(), 1 + k * (std::ceil(std::log2(n)) + 2));
  }
}

// Any two of three are enough, and a fourth one does harm.
TEST(SmallestSetTest, IsOneMinimalWhereMoreIsNotAlwaysBetter) {
  const auto holds = [](const std::vector<int>& members) {
    const int of_three =
        Contains(members, 2) + Contains(members, 5) + Contains(members, 8);
    return of_three >= 2 && (of_three == 3 || !Contains(members, 6));
  };
  const auto found = SmallestSet(10, holds);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(holds(*found));
  for (size_t i = 0; i < found->size(); ++i) {
    std::vector<int> less = *found;
    less.erase(less.begin() + i);
    EXPECT_FALSE(holds(less));
  }
}

TEST(SmallestSetTest, AnErrorEndsIt) {
  int asked = 0;
  const auto found =
      SmallestSet(10, [&](const std::vector<int>&) -> absl::StatusOr<bool> {
        if (++asked == 3) return ModelError("a run was stopped");
        return false;
      });
  EXPECT_EQ(found.status().message(), "a run was stopped");
  EXPECT_EQ(asked, 3);
}

TEST(SmallestSetTest, OfNothing) {
  const auto found = SmallestSet(0, [](const std::vector<int>&) {
    ADD_FAILURE();
    return true;
  });
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, IsEmpty());
}

}  // namespace
}  // namespace tools
}  // namespace halftone
