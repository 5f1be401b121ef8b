#include "graph/ir/slots.h"

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

}  // namespace
}  // namespace halftone
