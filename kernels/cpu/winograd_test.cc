#include "kernels/cpu/winograd.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace halftone {
namespace kernels {
namespace {

// Of F(4x4, 3x3) and images of lines x columns, each padded by a pixel.
WinogradTiles TilesOf(int64_t samples, int64_t lines, int64_t columns) {
  return WinogradTiles::Of<LowWinogradOfThree>(samples, {lines, lines, 1},
                                               {columns, columns, 1});
}

TEST(WinogradTilesTest, WhereTwoPixelsOrOneAreLeftATileIsShort) {
  for (int64_t lines = 1; lines <= 9; ++lines) {
    const WinogradTiles tiles = TilesOf(1, lines, 4);
    const WinogradKind last = tiles.KindOf(tiles.PlaceOf(tiles.count() - 1));
    EXPECT_EQ(last.down, lines % 4 == 1 || lines % 4 == 2) << lines;
    EXPECT_FALSE(last.across);
    for (int64_t t = 0; t < tiles.count() - 1; ++t) {
      EXPECT_FALSE(tiles.KindOf(tiles.PlaceOf(t)).down) << lines;
    }
  }
  // Of tiles of two, here down, none is.
  const WinogradTiles five =
      WinogradTiles::Of<WinogradOfFive>(1, {7, 7, 2}, {14, 14, 2});
  const WinogradKind last = five.KindOf(five.PlaceOf(five.count() - 1));
  EXPECT_FALSE(last.down);
  EXPECT_TRUE(last.across);
}

// How often each place of a range of tiles is taken, and what lies there.
void ExpectOrder(const WinogradTiles& tiles, WinogradRange range) {
  const WinogradKind kinds[] = {
      {false, false}, {false, true}, {true, false}, {true, true}};
  const WinogradOrder order(tiles, range);
  std::vector<WinogradKind> at(range.size());
  std::vector<int> taken(range.size());
  for (const WinogradKind kind : kinds) {
    const WinogradRange places = order.Of(kind);
    int64_t has = 0;
    for (int64_t t = range.begin; t < range.end; ++t) {
      has += tiles.KindOf(tiles.PlaceOf(t)) != kind ? 0 : 1;
    }
    ASSERT_EQ(places.size(), has);
    for (int64_t i = places.begin; i < places.end; ++i) {
      at[i] = kind;
      ++taken[i];
    }
  }
  for (int64_t i = 0; i < range.size(); ++i) {
    ASSERT_EQ(taken[i], 1);
    for (const WinogradKind lacking : kinds) {
      const WinogradRange with = order.With(lacking);
      const bool lacks =
          (lacking.down && at[i].down) || (lacking.across && at[i].across);
      ASSERT_EQ(with.begin <= i && i < with.end, !lacks) << "place " << i;
    }
  }
}

// Wherever a range begins and ends, in images of each remainder.
TEST(WinogradOrderTest, TilesOfEachPointAreSideBySide) {
  for (int64_t lines = 1; lines <= 9; ++lines) {
    for (int64_t columns = 1; columns <= 9; ++columns) {
      SCOPED_TRACE(::testing::Message() << lines << " x " << columns);
      const WinogradTiles tiles = TilesOf(2, lines, columns);
      for (int64_t begin = 0; begin < tiles.count(); ++begin) {
        for (int64_t end = begin + 1; end <= tiles.count(); ++end) {
          ASSERT_NO_FATAL_FAILURE(ExpectOrder(tiles, {begin, end}));
        }
      }
    }
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
