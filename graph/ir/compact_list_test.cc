#include "graph/ir/compact_list.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using List = CompactList<int32_t, 3>;

TEST(CompactListTest, IsAsSmallAsItsItems) {
  EXPECT_EQ(sizeof(List), 16u);
  EXPECT_EQ(sizeof(CompactList<Use, 3>), 28u);
  // Passes walk over them some forty times.
  EXPECT_LE(sizeof(Op), 144u);
  EXPECT_LE(sizeof(Value), 52u);
}

TEST(CompactListTest, GrowsOutOfItsRoom) {
  List list;
  std::vector<int32_t> expected;
  EXPECT_TRUE(list.empty());
  for (int32_t i = 0; i < 100; ++i) {
    list.push_back(i);
    expected.push_back(i);
    ASSERT_THAT(list, ElementsAreArray(expected));
    ASSERT_EQ(list.back(), i);
  }
  for (int i = 0; i < 99; ++i) list.pop_back();
  EXPECT_THAT(list, ElementsAre(0));
  list.clear();
  EXPECT_TRUE(list.empty());
  list.push_back(7);
  EXPECT_THAT(list, ElementsAre(7));
}

TEST(CompactListTest, CopiesAndMovesOfFewAndMany) {
  for (const int count : {0, 2, 3, 4, 9}) {
    List list;
    list.resize(count);
    for (int i = 0; i < count; ++i) list[i] = 5 - i;
    const List copy = list;
    List moved = std::move(list);
    EXPECT_EQ(copy, moved);
    EXPECT_EQ(copy.size(), static_cast<size_t>(count));
    list = copy;
    EXPECT_EQ(list, copy);
    moved.push_back(1);
    EXPECT_NE(moved, copy);
    List& same = list;
    list = same;
    EXPECT_EQ(list, copy);
    list = std::move(moved);
    EXPECT_EQ(list.size(), copy.size() + 1);
    list = List();
    EXPECT_TRUE(list.empty());
  }
}

TEST(CompactListTest, InsertsAndErases) {
  List list = {1, 2};
  list.insert(1, 3, 9);
  EXPECT_THAT(list, ElementsAre(1, 9, 9, 9, 2));
  list.insert(5, 1, 4);
  list.erase(1, 3);
  EXPECT_THAT(list, ElementsAre(1, 9, 2, 4));
  list.insert(0, 0, 8);
  list.erase(2, 2);
  EXPECT_THAT(list, ElementsAre(1, 9, 2, 4));
  list.erase(0, 4);
  EXPECT_TRUE(list.empty());
  const std::vector<int32_t> items = {3, 4, 5, 6};
  list = List(items.begin(), items.end());
  EXPECT_THAT(list, ElementsAreArray(items));
  list.resize(2);
  list.resize(4);
  EXPECT_THAT(list, ElementsAre(3, 4, 0, 0));
}

}  // namespace
}  // namespace halftone
