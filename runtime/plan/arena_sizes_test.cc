#include "runtime/plan/arena_sizes.h"

#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

// state, feed, temporary, communication, result, staging
TEST(ArenaSizes, AreTheLargestAndSumsOfWhatEntriesOwn) {
  ArenaSizes sizes;
  sizes.Add("train", {100, 10, 50, 7, 3, 0});
  sizes.Add("train", {100, 20, 40, 5, 4, 0});
  sizes.Add("eval", {100, 15, 60, 1, 2, 0});
  EXPECT_EQ(sizes.Sums(), (ArenaBytes{100, 20, 60, 8, 6, 0}));
  EXPECT_EQ(TotalOf(sizes.Sums()), 194);
  EXPECT_EQ(sizes.Shared(ArenaKind::kTemporary), 60);
  EXPECT_EQ(sizes.per_entry().at("train")[3], 7);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
