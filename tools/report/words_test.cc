#include "tools/report/words.h"

#include "gtest/gtest.h"

namespace halftone {
namespace tools {
namespace {

TEST(JoinFewTest, SaysHowManyMore) {
  EXPECT_EQ(JoinFew({}, 2), "");
  EXPECT_EQ(JoinFew({"a", "b"}, 2), "a b");
  EXPECT_EQ(JoinFew({"a", "b", "c", "d"}, 2), "a b and 2 more");
}

}  // namespace
}  // namespace tools
}  // namespace halftone
