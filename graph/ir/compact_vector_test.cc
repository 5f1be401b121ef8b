// Vectors and slots of which a few items lie in place.
#include "graph/ir/compact_vector.h"

#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/ir/slots.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

using Vector = CompactVector<int32_t, 2>;

Vector Counted(int size) {
  std::vector<int32_t> items(size);
  std::iota(items.begin(), items.end(), 0);
  Vector vector;
  vector.Append(items.begin(), items.end());
  return vector;
}

TEST(CompactVectorTest, RecordsAreSmall) {
  EXPECT_EQ(sizeof(Vector), 12);
  EXPECT_EQ(sizeof(SlotEnds), 12);
  EXPECT_EQ(sizeof(SlotValues), 32);
  EXPECT_LE(sizeof(Op), 144);
  EXPECT_LE(sizeof(Value), 56);
}

// The same edits of a std::vector, over and over the border between in place
// and on the heap.
TEST(CompactVectorTest, DoesWhatAVectorDoes) {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return random() % n; };
  Vector vector;
  std::vector<int32_t> expected;
  for (int i = 0; i < 20000; ++i) {
    const std::vector<int32_t> items(below(4), i);
    const size_t at = below(expected.size() + 1);
    const size_t count = below(expected.size() - at + 1);
    switch (below(expected.size() > 9 ? 6 : 4)) {
      case 0:
        vector.push_back(i);
        expected.push_back(i);
        break;
      case 1:
        vector.insert(at, items);
        expected.insert(expected.begin() + at, items.begin(), items.end());
        break;
      case 2:
        vector.Append(items.begin(), items.end());
        expected.insert(expected.end(), items.begin(), items.end());
        break;
      case 3:
        if (expected.empty()) break;
        EXPECT_EQ(vector.back(), expected.back());
        vector.pop_back();
        expected.pop_back();
        break;
      default:
        vector.erase(at, count);
        expected.erase(expected.begin() + at, expected.begin() + at + count);
    }
    ASSERT_THAT(vector, ElementsAreArray(expected)) << i;
  }
}

TEST(CompactVectorTest, CopiesAndMoves) {
  for (const int size : {0, 1, 2, 3, 9}) {
    const Vector original = Counted(size);
    Vector copy = original;
    EXPECT_EQ(copy, original);
    Vector moved = std::move(copy);
    EXPECT_EQ(moved, original);
    for (const int other : {0, 2, 5}) {
      Vector target = Counted(other);
      target = original;
      EXPECT_EQ(target, original);
      EXPECT_EQ(target != Counted(other), size != other);
      Vector taken = Counted(other);
      taken = std::move(target);
      EXPECT_EQ(taken, original);
    }
    moved.clear();
    EXPECT_THAT(moved, IsEmpty());
    EXPECT_THAT(original, ElementsAreArray(Counted(size)));
  }
}

SlotEnds Ends(const std::vector<int>& ends) {
  SlotEnds made;
  for (int end : ends) made.push_back(end);
  return made;
}

std::vector<int> All(const SlotEnds& ends) {
  std::vector<int> all;
  for (int s = 0; s < ends.size(); ++s) all.push_back(ends[s]);
  return all;
}

TEST(SlotEndsTest, OfManySlotsAndLongLists) {
  for (const std::vector<int>& ends : {std::vector<int>{},
                                       {3},
                                       {0, 0, 255},
                                       {1, 256},
                                       {70000, 70001, 70001},
                                       {1, 2, 3, 4, 5, 6, 7, 8},
                                       {1, 2, 3, 4, 5, 6, 7, 8, 9, 9}}) {
    const SlotEnds made = Ends(ends);
    EXPECT_EQ(All(made), ends);
    SlotEnds copy = made;
    EXPECT_TRUE(copy == made);
    copy.push_back(100000);
    EXPECT_FALSE(copy == made);
    copy = made;
    EXPECT_EQ(All(copy), ends);
    const SlotEnds moved = std::move(copy);
    EXPECT_EQ(All(moved), ends);
  }
}

// Ends that became small again are those that always were.
TEST(SlotEndsTest, ShiftedThereAndBack) {
  SlotEnds ends = Ends({1, 3, 4});
  ends.Shift(1, 300);
  EXPECT_EQ(All(ends), std::vector<int>({1, 303, 304}));
  EXPECT_FALSE(ends == Ends({1, 3, 4}));
  EXPECT_TRUE(ends == Ends({1, 303, 304}));
  ends.Shift(1, -300);
  EXPECT_TRUE(ends == Ends({1, 3, 4}));
}

TEST(SlotEndsTest, WordsTellEndsApart) {
  const auto words = [](const std::vector<int>& ends) {
    std::vector<uint64_t> all;
    Ends(ends).Words([&all](uint64_t word) { all.push_back(word); });
    return all;
  };
  EXPECT_EQ(words({1, 2}), words({1, 2}));
  EXPECT_NE(words({1, 2}), words({2, 2}));
  EXPECT_NE(words({1, 300}), words({2, 300}));
}

TEST(SlotsTest, HoldsItemsBySlot) {
  const SlotValues slots = {{ValueId(4), ValueId(5)}, {}, {ValueId(6)}};
  EXPECT_EQ(slots.slots(), 3);
  EXPECT_THAT(slots.all(), ElementsAre(ValueId(4), ValueId(5), ValueId(6)));
  EXPECT_THAT(slots.slot(0), ElementsAre(ValueId(4), ValueId(5)));
  EXPECT_FALSE(slots.has(1));
  EXPECT_EQ(slots.SlotOf(1), 0);
  EXPECT_EQ(slots.SlotOf(2), 2);
}

}  // namespace
}  // namespace halftone
