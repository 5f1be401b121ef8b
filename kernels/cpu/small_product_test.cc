#include "kernels/cpu/small_product.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/pack_rows.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

std::vector<float> Floats(int64_t n, int64_t salt = 0) {
  const std::vector<double> x = Eighths(n, salt);
  return std::vector<float>(x.begin(), x.end());
}

TEST(SmallProduct, EveryNumberOfRows) {
  constexpr int64_t kDepth = 3, kColumns = 37;
  for (int64_t rows = 1; rows <= 26; ++rows) {
    const std::vector<float> x = Floats(rows * kDepth);
    const std::vector<float> y = Floats(kDepth * kColumns, 1);
    std::vector<float> panels(kDepth * Padded(kColumns));
    std::vector<float> out(rows * Padded(kColumns), 1.0f);
    Multiply(rows, PanelsOf(kColumns), kDepth, {x.data(), kDepth},
             ToPanels({y.data(), kColumns}, kDepth, kColumns, panels.data()),
             /*add=*/true, out.data(), Padded(kColumns));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < kColumns; ++c) {
        float sum = 1;
        for (int64_t k = 0; k < kDepth; ++k) {
          sum += x[r * kDepth + k] * y[k * kColumns + c];
        }
        ASSERT_EQ(out[r * Padded(kColumns) + c], sum) << rows << " " << r;
      }
    }
  }
}

// Two of bf16 in place of a float, the first one in the low bits.
float PairOf(float first, float second) {
  uint32_t low, high;
  std::memcpy(&low, &first, sizeof(low));
  std::memcpy(&high, &second, sizeof(high));
  const uint32_t pair = low >> 16 | (high & 0xffff0000u);
  float to;
  std::memcpy(&to, &pair, sizeof(to));
  return to;
}

TEST(SmallProduct, PairsOfBf16) {
  if (!HasPairs()) return;
  constexpr int64_t kPairs = 5, kDepth = 2 * kPairs, kColumns = 48;
  for (int64_t rows = 1; rows <= 26; ++rows) {
    const std::vector<float> x = Floats(rows * kDepth);
    const std::vector<float> y = Floats(kDepth * kColumns, 1);
    std::vector<float> left, right(kPairs * kColumns);
    for (int64_t i = 0; i < rows * kPairs; ++i) {
      left.push_back(PairOf(x[2 * i], x[2 * i + 1]));
    }
    for (int64_t k = 0; k < kPairs; ++k) {
      for (int64_t c = 0; c < kColumns; ++c) {
        const float* const at = y.data() + 2 * k * kColumns + c;
        right[(c / kPanel * kPairs + k) * kPanel + c % kPanel] =
            PairOf(*at, at[kColumns]);
      }
    }
    const DepthPart whole;
    PartsProduct product;
    product.rows = rows;
    product.panels = PanelsOf(kColumns);
    product.parts = absl::MakeConstSpan(&whole, 1);
    product.depth = kPairs;
    product.left = {left.data(), kPairs};
    product.right = {right.data(), kPairs * kPanel};
    product.pairs = true;
    std::vector<float> out(rows * kColumns, 1.0f);
    Multiply(product, /*add=*/true, out.data(), kColumns);
    for (int64_t i = 0; i < rows * kColumns; ++i) {
      float sum = 1;
      for (int64_t k = 0; k < kDepth; ++k) {
        sum += x[i / kColumns * kDepth + k] * y[k * kColumns + i % kColumns];
      }
      ASSERT_EQ(out[i], sum) << rows << " " << i;
    }
  }
}

// Lines of a left factor [depth, rows] in tiles, and of every second row of a
// panel: each in a place of its own.
TEST(SmallProduct, TilesAndPartsOfTheDepth) {
  constexpr int64_t kLines = 3, kDepth = 2, kColumns = 16;
  const std::vector<DepthPart> places = {{4, 32}, {0, 160}, {8, 64}};
  for (int64_t rows = 1; rows <= 26; ++rows) {
    const int64_t tile = TileRows(), stride = kLines * 4 * tile;
    const std::vector<float> x = Floats(kLines * kDepth * rows);
    const std::vector<float> panel = Floats(16 * kColumns, 1);
    std::vector<float> tiles((rows + tile - 1) / tile * stride);
    std::vector<DepthPart> parts;
    for (const DepthPart& place : places) {
      parts.push_back({place.left / 4 * kDepth * tile, place.right});
    }
    for (int64_t i : {1, 0, 2}) {  // by place: what is behind is spoiled
      PixelRows line;
      line.data = x.data() + i * kDepth * rows;
      line.stride = rows;
      PackTiles(line, kDepth, rows, stride, tiles.data() + parts[i].left);
    }
    PartsProduct product;
    product.rows = rows;
    product.parts = parts;
    product.depth = kDepth;
    product.left.data = tiles.data();
    product.tile_stride = stride;
    product.right = {panel.data(), 0, 2 * kPanel};
    std::vector<float> out(rows * kColumns);
    Multiply(product, /*add=*/false, out.data(), kColumns);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < kColumns; ++c) {
        float sum = 0;
        for (int64_t i = 0; i < kLines * kDepth; ++i) {
          sum += x[i * rows + r] *
                 panel[places[i / kDepth].right + i % kDepth * 2 * kPanel + c];
        }
        ASSERT_EQ(out[r * kColumns + c], sum) << rows << " " << r;
      }
    }
  }
}

TEST(SmallProduct, NoDepthIsZeros) {
  std::vector<float> out(2 * kPanel, 1);
  PartsProduct product;
  product.rows = 2;
  Multiply(product, /*add=*/false, out.data(), kPanel);
  EXPECT_EQ(out, std::vector<float>(2 * kPanel, 0));
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
