#include "graph/ops/windows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace ops {
namespace {

using ::testing::ElementsAre;

const Dim kS = Dim::Symbol(1);

// Output sizes of well-known layers.
TEST(WindowOutput, Sizes) {
  EXPECT_EQ(WindowOutput(224, {7, 2, 3, 3}), Dim(112));
  EXPECT_EQ(WindowOutput(28, {5, 1, 2, 2}), Dim(28));
  EXPECT_EQ(WindowOutput(9, {3, 1, 0, 0, 3}), Dim(3));
  EXPECT_EQ(WindowOutput(2, {3, 1, 0, 0}), std::nullopt);
  EXPECT_EQ(WindowOutput(kS, {3, 1, 1, 1}), kS);
  EXPECT_EQ(WindowOutput(kS, {1, 2, 0, 0}), std::nullopt);
  EXPECT_EQ(WindowOutput(INT64_MAX, {1, 1, 0, 0}), std::nullopt);
}

TEST(FullPaddings, OneOrTwoForEachDim) {
  EXPECT_THAT(FullPaddings({1, 2}, 2), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(FullPaddings({1, 2, 3, 4}, 2), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(FullPaddings({1, 2}, 1), ElementsAre(1, 2));
  EXPECT_THAT(FullPaddings({1, 2, 3}, 3), ElementsAre(1, 1, 2, 2, 3, 3));
}

// The least image that has so many windows; strides leave others.
TEST(WindowInput, IsWhatWindowOutputComesFrom) {
  for (const Window& window :
       {Window{2, 2, 0, 0}, Window{3, 2, 1, 1}, Window{4, 3, 2, 0},
        Window{3, 1, 0, 0, 3}, Window{1, 5, 0, 0}}) {
    for (int64_t n = 1; n < 6; ++n) {
      const auto size = WindowInput(n, window);
      ASSERT_TRUE(size.has_value());
      for (int64_t more = 0; more < window.stride; ++more) {
        EXPECT_EQ(WindowOutput(size->coefficient() + more, window), Dim(n));
      }
      EXPECT_NE(WindowOutput(size->coefficient() - 1, window), Dim(n));
    }
  }
  EXPECT_EQ(WindowInput(1, {1, 1, 1, 1}), std::nullopt);
  EXPECT_EQ(WindowInput(INT64_MAX, {1, 1, 0, 0}), std::nullopt);
  EXPECT_EQ(WindowInput(kS, {3, 1, 1, 1}), kS);
  EXPECT_EQ(WindowInput(kS, {2, 2, 0, 0}), std::nullopt);
}

TEST(Spatial, IsCalledByTheLastOfItsNames) {
  EXPECT_EQ(ImageText(1), "[N, C, W]");
  EXPECT_EQ(ImageText(2, "O", "O"), "[N, O, OH, OW]");
  EXPECT_EQ(SpatialAnd(3), "D, H and W");
  EXPECT_EQ(SpatialAnd(1, "k"), "kW");
  EXPECT_EQ(SpatialNames(2), "height, width");
  EXPECT_EQ(SpatialSides(3), "front, back, top, bottom, left, right");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
