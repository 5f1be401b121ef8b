#include "graph/ir/slots.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;

TEST(SlotsTest, HoldsItemsBySlot) {
  const SlotValues slots = {{ValueId(4), ValueId(5)}, {}, {ValueId(6)}};
  EXPECT_EQ(slots.slots(), 3);
  EXPECT_THAT(slots.all(), ElementsAre(ValueId(4), ValueId(5), ValueId(6)));
  EXPECT_THAT(slots.slot(0), ElementsAre(ValueId(4), ValueId(5)));
  EXPECT_FALSE(slots.has(1));
  EXPECT_EQ(slots.SlotOf(1), 0);
  EXPECT_EQ(slots.SlotOf(2), 2);
}

SlotEnds EndsOf(const std::vector<int32_t>& ends) {
  SlotEnds made;
  for (int32_t end : ends) made.push_back(end);
  return made;
}

std::vector<int32_t> Read(const SlotEnds& ends) {
  std::vector<int32_t> read;
  for (int s = 0; s < ends.size(); ++s) read.push_back(ends[s]);
  return read;
}

// Slots and items beyond what a word holds, and at its edge.
TEST(SlotEndsTest, FewArePackedAndManyAreNot) {
  for (const int slots : {0, 1, 13, 14, 15, 40}) {
    for (const int items : {0, 1, 15, 16, 70000}) {
      std::vector<int32_t> ends(slots);
      for (int s = 0; s < slots; ++s) ends[s] = (s + 1) * items / slots;
      const SlotEnds made = EndsOf(ends);
      EXPECT_EQ(Read(made), ends);
      EXPECT_EQ(made.packed(), slots <= 14 && (slots == 0 || items <= 15));
      SlotEnds copy = made;
      EXPECT_EQ(copy, made);
      const SlotEnds moved = std::move(copy);
      EXPECT_EQ(Read(moved), ends);
      EXPECT_EQ(copy.size(), 0);
    }
  }
}

// Whatever way they came about, equal ends are equal: kinds of ops hash them.
TEST(SlotEndsTest, ShiftsLeaveThemAsIfMadeSo) {
  SlotEnds ends = EndsOf({2, 2, 5});
  ends.Shift(1, 9);
  EXPECT_EQ(ends, EndsOf({2, 11, 14}));
  ends.Shift(2, 2);
  EXPECT_FALSE(ends.packed());
  EXPECT_EQ(ends, EndsOf({2, 11, 16}));
  ends.Shift(1, -9);
  EXPECT_TRUE(ends.packed());
  EXPECT_EQ(ends, EndsOf({2, 2, 7}));
  ends.Shift(0, -2);
  EXPECT_EQ(ends, EndsOf({0, 0, 5}));
  ends.clear();
  EXPECT_EQ(ends, SlotEnds());
}

}  // namespace
}  // namespace halftone
