#include "graph/ops/infer_helpers.h"

#include "gtest/gtest.h"

namespace halftone {
namespace ops {
namespace {

const Dim kB = Dim::Symbol(0);
const Dim kS = Dim::Symbol(1);

TEST(AlignDims, LastDimsOrAnAxis) {
  EXPECT_EQ(AlignDims({Dim(8)}, 4, -1), (Dims{1, 1, 1, 8}));
  EXPECT_EQ(AlignDims({Dim(8)}, 4, 1), (Dims{1, 8, 1, 1}));
  EXPECT_EQ(AlignDims({kB, Dim(8)}, 2, 0), (Dims{kB, 8}));
  EXPECT_EQ(AlignDims({}, 2, -1), (Dims{1, 1}));
  EXPECT_EQ(AlignDims({}, 0, -1), Dims());
  EXPECT_EQ(AlignDims({Dim(8), Dim(1), Dim(1)}, 2, 1), (Dims{1, 8}));
  EXPECT_EQ(AlignDims({Dim(8), Dim(2)}, 2, 1), std::nullopt);
  EXPECT_EQ(AlignDims({Dim(8), Dim(2)}, 1, -1), std::nullopt);
  EXPECT_EQ(AlignDims({Dim(8)}, 2, 3), std::nullopt);
}

TEST(BroadcastDims, EqualOrOne) {
  EXPECT_EQ(BroadcastDims({kB, Dim(1)}, {Dim(1), kS}, -1), (Dims{kB, kS}));
  EXPECT_EQ(BroadcastDims({Dim(4)}, {kB, Dim(4)}, -1), (Dims{kB, 4}));
  EXPECT_EQ(BroadcastDims({kB}, {kS}, -1), std::nullopt);
  EXPECT_EQ(BroadcastDims({kB}, {kB * Dim(2)}, -1), std::nullopt);
  EXPECT_EQ(BroadcastDims({Dim(0)}, {Dim(1)}, -1), Dims{0});
}

TEST(ReducedAxes, EmptyMeansAll) {
  EXPECT_EQ(ReducedAxes({}, false, 2), (std::vector<bool>{true, true}));
  EXPECT_EQ(ReducedAxes({-1}, false, 2), (std::vector<bool>{false, true}));
  EXPECT_EQ(ReducedAxes({0}, true, 2), (std::vector<bool>{true, true}));
  EXPECT_EQ(ReducedAxes({0, -2}, false, 2), std::nullopt);
  EXPECT_EQ(ReducedAxes({2}, false, 2), std::nullopt);
  EXPECT_EQ(ReducedAxes({INT64_MIN}, false, 2), std::nullopt);
}

TEST(Sum, NeedsTheSameSymbols) {
  EXPECT_EQ(Sum(Dim(3), Dim(4)), Dim(7));
  EXPECT_EQ(Sum(kB, kB * Dim(3)), kB * Dim(4));
  EXPECT_EQ(Sum(Dim(0), kB), kB);
  EXPECT_EQ(Sum(kB, Dim(1)), std::nullopt);
  EXPECT_EQ(Sum(Dim(INT64_MAX), Dim(1)), std::nullopt);
}

}  // namespace
}  // namespace ops
}  // namespace halftone
