// The compiler leaves every rounding where the source has it (.bazelrc): GCC
// 12's SLP vectorizer drops that of neighbours which go to float and back.
#include "gtest/gtest.h"

namespace halftone {
namespace {

struct Ratios {
  double up = 2, down = 0.5;
};

__attribute__((noipa)) void RoundBoth(Ratios* ratios) {
  ratios->up = static_cast<float>(ratios->up);
  ratios->down = static_cast<float>(ratios->down);
}

__attribute__((noipa)) void ScaleBoth(const float* from, double by,
                                      double* to) {
  to[0] = static_cast<float>(from[0] * by);
  to[1] = static_cast<float>(from[1] * by);
}

TEST(Rounding, OfNeighboursIsKept) {
  Ratios ratios = {1.1, 0.8};
  RoundBoth(&ratios);
  EXPECT_EQ(ratios.up, 1.1f);
  EXPECT_EQ(ratios.down, 0.8f);
}

TEST(Rounding, OfProductsIsKept) {
  const float from[] = {3, 7};
  double to[2];
  ScaleBoth(from, 0.1, to);
  EXPECT_EQ(to[0], 0.3f);
  EXPECT_EQ(to[1], 0.7f);
}

}  // namespace
}  // namespace halftone
