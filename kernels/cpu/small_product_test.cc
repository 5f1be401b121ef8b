#include "kernels/cpu/small_product.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "graph/base/half.h"
#include "gtest/gtest.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/pack_rows.h"
#include "kernels/cpu/read_ahead.h"
#include "kernels/cpu/streamed_output.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

// Elements that begin with a cache line.
template <typename T>
class Lines {
 public:
  explicit Lines(int64_t n)
      : memory_(n + ReadAhead::kLine / sizeof(T), static_cast<T>(-1.0f)) {}
  T* data() {
    const auto line = static_cast<uintptr_t>(ReadAhead::kLine);
    const auto at = reinterpret_cast<uintptr_t>(memory_.data());
    return reinterpret_cast<T*>((at + line - 1) / line * line);
  }

 private:
  std::vector<T> memory_;
};

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

// Of floats, a bias below them, rounded as they lie and around the caches.
template <typename Out>
void ExpectRoundedFloats(int64_t rows, int64_t columns) {
  constexpr int64_t kDepth = 5;
  const int64_t stride = (PanelsOf(columns) + 1) / 2 * 2 * kPanel;
  const std::vector<float> x = Floats(rows * kDepth);
  const std::vector<float> y = Floats(kDepth * columns, 1);
  const std::vector<float> bias = Floats(stride, 2);
  std::vector<float> panels(kDepth * Padded(columns));
  const DepthPart whole;
  PartsProduct product;
  product.rows = rows;
  product.panels = PanelsOf(columns);
  product.parts = absl::MakeConstSpan(&whole, 1);
  product.depth = kDepth;
  product.left = {x.data(), kDepth};
  product.right = ToPanels({y.data(), columns}, kDepth, columns, panels.data());
  product.bias = bias.data();
  for (bool streams : {false, true}) {
    product.streams = streams;
    Lines<Out> out(rows * stride);
    MultiplyRounded(product, out.data(), stride);
    FinishStores();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        float sum = bias[c];
        for (int64_t k = 0; k < kDepth; ++k) {
          sum += x[r * kDepth + k] * y[k * columns + c];
        }
        ASSERT_EQ(out.data()[r * stride + c].bits, Out(sum).bits)
            << rows << " " << columns << " " << r << " " << c;
      }
    }
  }
}

TEST(SmallProduct, RoundsFloats) {
  if (!RoundsProducts(/*pairs=*/false)) GTEST_SKIP() << "not on this machine";
  for (int64_t rows : {1, 5, 6, 11, 12, 26}) {
    for (int64_t columns : {13, 32, 48}) {
      ExpectRoundedFloats<half>(rows, columns);
      ExpectRoundedFloats<bfloat16>(rows, columns);
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

// A product of pairs, of `parts` parts of `depth` pairs each, whose factors are
// rows of bf16.
class PairsProduct {
 public:
  PairsProduct(int64_t rows, int64_t columns, int64_t parts, int64_t depth)
      : rows_(rows),
        columns_(columns),
        pairs_(parts * depth),
        x_(Floats(rows * 2 * pairs_)),
        y_(Floats(2 * pairs_ * columns, 1)),
        right_(PanelsOf(columns) * pairs_ * kPanel) {
    for (int64_t k = 0; k < pairs_; ++k) {
      for (int64_t c = 0; c < columns; ++c) {
        const float* const at = y_.data() + 2 * k * columns + c;
        right_[(c / kPanel * pairs_ + k) * kPanel + c % kPanel] =
            PairOf(*at, at[columns]);
      }
    }
    for (int64_t i = 0; i < parts; ++i) {
      parts_.push_back({i * depth, i * depth * kPanel});
    }
    product_.rows = rows;
    product_.panels = PanelsOf(columns);
    product_.depth = depth;
    product_.right = {right_.data(), pairs_ * kPanel};
    product_.pairs = true;
  }

  // The factor lies by rows.
  void InPlace() {
    for (int64_t i = 0; i < rows_ * pairs_; ++i) {
      left_.push_back(PairOf(x_[2 * i], x_[2 * i + 1]));
    }
    product_.left = {left_.data(), pairs_};
  }
  // It is tiles of blocks.
  void InBlocks() {
    const DepthBlocks blocks(product_.depth);
    for (DepthPart& part : parts_) {
      part.left = part.left / product_.depth * blocks.count * kBlockFloats;
    }
    const auto parts = static_cast<int64_t>(parts_.size());
    product_.tile_stride = parts * blocks.count * kBlockFloats;
    product_.blocks = true;
    // What no column is of never counts.
    left_.assign((rows_ + 15) / 16 * product_.tile_stride,
                 std::numeric_limits<float>::quiet_NaN());
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t k = 0; k < pairs_; ++k) {
        const int64_t at = k % product_.depth;
        const int64_t b = std::min(at / blocks.columns, blocks.count - 1);
        const int64_t last = blocks.count - 1;
        float* const row = left_.data() + r / 16 * product_.tile_stride +
                           parts_[k / product_.depth].left + r % 16 * kPanel;
        row[b * kBlockFloats + at - blocks.First(b)] =
            PairOf(x_[2 * (r * pairs_ + k)], x_[2 * (r * pairs_ + k) + 1]);
        for (int64_t c = blocks.First(last); c < last * blocks.columns; ++c) {
          row[last * kBlockFloats + c - blocks.First(last)] = 0.0f;
        }
      }
    }
    product_.left.data = left_.data();
  }

  void Expect(bool add) {
    product_.parts = parts_;
    const int64_t stride = Padded(columns_) + 3;
    std::vector<float> out(rows_ * stride, 1.0f);
    Multiply(product_, add, out.data(), stride);
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < columns_; ++c) {
        float sum = add ? 1 : 0;
        for (int64_t k = 0; k < 2 * pairs_; ++k) {
          sum += x_[r * 2 * pairs_ + k] * y_[k * columns_ + c];
        }
        ASSERT_EQ(out[r * stride + c], sum)
            << rows_ << " " << columns_ << " " << product_.depth << " " << r
            << " " << c;
      }
    }
  }

  // Rounded, as they lie and around the caches, while `ahead` comes near.
  void ExpectRounded() {
    const int64_t stride = (PanelsOf(columns_) + 1) / 2 * 2 * kPanel;
    std::vector<float> sums(rows_ * stride);
    Multiply(product_, /*add=*/false, sums.data(), stride);
    for (bool streams : {false, true}) {
      ReadAhead ahead;
      ahead.Add(x_.data(), static_cast<int64_t>(x_.size() * sizeof(float)));
      product_.ahead = &ahead;
      product_.streams = streams;
      Lines<bfloat16> out(rows_ * stride);
      const bfloat16 none = out.data()[0];
      MultiplyRounded(product_, out.data(), stride);
      FinishStores();
      for (int64_t i = 0; i < rows_ * stride; ++i) {
        const bool made = i % stride < PanelsOf(columns_) * kPanel;
        const bfloat16 expected = made ? bfloat16(sums[i]) : none;
        ASSERT_EQ(out.data()[i].bits, expected.bits)
            << rows_ << " " << columns_ << " " << i << " " << streams;
      }
    }
  }

 private:
  int64_t rows_, columns_, pairs_;
  std::vector<float> x_, y_, left_, right_;
  std::vector<DepthPart> parts_;
  PartsProduct product_;
};

TEST(SmallProduct, PairsOfBf16) {
  if (!HasPairs()) GTEST_SKIP() << "this machine multiplies no pairs";
  for (int64_t depth : {1, 3, 5, 16, 17, 24, 34, 56}) {
    for (int64_t rows : {1, 2, 11, 12, 13, 16, 17, 26, 33, 49, 70}) {
      for (int64_t parts : {1, 3}) {
        PairsProduct product(rows, rows % 2 == 0 ? 48 : 13, parts, depth);
        product.InPlace();
        product.Expect(/*add=*/depth % 2 == 0);
        if (!HasAmx()) product.ExpectRounded();
      }
    }
  }
}

TEST(SmallProduct, BlocksOfPairs) {
  if (!HasAmx()) GTEST_SKIP() << "this machine has no AMX_BF16";
  for (int64_t depth : {1, 3, 7, 16, 17, 29, 56, 64}) {
    for (int64_t rows : {1, 11, 16, 17, 33, 64}) {
      for (int64_t parts : {1, 3}) {
        PairsProduct product(rows, rows % 2 == 0 ? 48 : 13, parts, depth);
        product.InBlocks();
        product.Expect(/*add=*/rows % 2 == 0);
      }
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
    ReadAhead ahead;
    ahead.Add(x.data(), static_cast<int64_t>(x.size() * sizeof(float)));
    product.ahead = &ahead;
    std::vector<float> again(rows * kColumns);
    Multiply(product, /*add=*/false, again.data(), kColumns);
    EXPECT_EQ(again, out) << rows;
  }
}

TEST(ReadAhead, TakesWhatLiesInAPiece) {
  const std::vector<char> memory(10 * ReadAhead::kLine);
  const char* const at = memory.data();
  ReadAhead ahead;
  EXPECT_EQ(ahead.Take(1), nullptr);
  ahead.Add(at, 5 * ReadAhead::kLine + 1);
  ahead.Add(at + 6 * ReadAhead::kLine, 4 * ReadAhead::kLine);
  EXPECT_EQ(ahead.Take(3), at);
  EXPECT_EQ(ahead.Take(2), at + 3 * ReadAhead::kLine);
  EXPECT_EQ(ahead.Take(2), nullptr) << "of a rest";
  EXPECT_EQ(ahead.Take(4), at + 6 * ReadAhead::kLine);
  EXPECT_EQ(ahead.Take(1), nullptr);
  EXPECT_EQ(ahead.Take(1), nullptr);
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
