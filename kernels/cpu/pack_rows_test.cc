#include "kernels/cpu/pack_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "graph/base/half.h"
#include "gtest/gtest.h"
#include "kernels/cpu/small_product.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

constexpr int64_t kRows = 5, kStride = 61;

// Rows of T, the norm of which is taken if asked for.
template <typename T>
class Image {
 public:
  explicit Image(int64_t salt, int64_t rows = kRows) {
    for (double x : Eighths(rows * kStride, salt)) {
      data_.push_back(static_cast<T>(static_cast<float>(x)));
    }
  }
  const T* data() const { return data_.data(); }
  float At(int64_t r, int64_t c, const NormalizeMap* norm) const {
    const float x = static_cast<float>(data_[r * kStride + c]);
    if (norm == nullptr) return x;
    const T y =
        static_cast<T>((x - norm->mean[c]) * norm->factor[c] + norm->bias[c]);
    return std::max(0.0f, static_cast<float>(y));
  }

 private:
  std::vector<T> data_;
};

float Pair(float first, float second) {
  const bfloat16 both[] = {static_cast<bfloat16>(first),
                           static_cast<bfloat16>(second)};
  float pair;
  std::memcpy(&pair, both, sizeof(pair));
  return pair;
}

uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

class PackRows : public ::testing::Test {
 protected:
  // That of element (r, c): `second` null: of zeros.
  template <typename T>
  float Expected(const PixelRows& x, const Image<T>& first,
                 const Image<T>* second, int64_t r, int64_t c) const {
    const float low = first.At(r, c, x.norm);
    if (!x.pairs) return low;
    return Pair(low, second == nullptr ? 0.0f : second->At(r, c, x.norm));
  }

  template <typename T>
  void Expect(DType dtype, bool normal, bool pairs, bool has_second) {
    const Image<T> first(1), second(2);
    PixelRows x = {dtype, first.data(), kStride};
    if (normal) x.norm = &norm_;
    x.pairs = pairs;
    if (has_second) x.second = second.data();
    const Image<T>* const other = has_second ? &second : nullptr;
    for (int64_t columns : {1, 12, 16, 29, 48, 61}) {
      const int64_t stride = (kRows + 1) * kPanel;
      std::vector<float> panels(PanelsOf(columns) * stride, 7.0f);
      PackPanels(x, kRows, columns, stride, panels.data());
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t c = 0; c < Padded(columns); ++c) {
          const float expected =
              c < columns ? Expected(x, first, other, r, c) : 0.0f;
          ASSERT_EQ(Bits(panels[c / kPanel * stride + r * kPanel + c % kPanel]),
                    Bits(expected))
              << columns << " " << r << " " << c;
        }
      }
      if (normal) continue;
      const int64_t tile = TileRows(), tile_stride = kRows * tile + kPanel;
      std::vector<float> tiles((columns + tile - 1) / tile * tile_stride);
      PackTiles(x, kRows, columns, tile_stride, tiles.data());
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          ASSERT_EQ(Bits(tiles[c / tile * tile_stride + r * tile + c % tile]),
                    Bits(Expected(x, first, other, r, c)))
              << columns << " " << r << " " << c;
        }
      }
    }
  }

  // A line of `depth` rows, packed from row `first` on in pieces: columns of
  // blocks, of the last one zeros where it begins in the one before.
  void ExpectBlocks(int64_t depth, int64_t piece, bool has_second) {
    const Image<bfloat16> first(1, depth), second(2, depth);
    PixelRows x = {DType::kBF16, first.data(), kStride};
    x.pairs = true;
    if (has_second) x.second = second.data();
    const Image<bfloat16>* const other = has_second ? &second : nullptr;
    const DepthBlocks blocks(depth);
    for (int64_t columns : {1, 12, 16, 29, 48, 61}) {
      const int64_t stride = blocks.count * kBlockFloats + kPanel;
      std::vector<float> tiles((columns + 15) / 16 * stride, 7.0f);
      for (int64_t row = 0; row < depth; row += piece) {
        PixelRows rows = x;
        rows.data = first.data() + row * kStride;
        if (has_second) rows.second = second.data() + row * kStride;
        PackBlocks(rows, std::min(piece, depth - row), columns, row, depth,
                   stride, tiles.data());
      }
      for (int64_t b = 0; b < blocks.count; ++b) {
        for (int64_t k = 0; k < blocks.columns; ++k) {
          const int64_t r = blocks.First(b) + k;
          const bool again = r < b * blocks.columns;
          for (int64_t c = 0; c < columns; ++c) {
            const float found =
                tiles[c / 16 * stride + b * kBlockFloats + c % 16 * kPanel + k];
            ASSERT_EQ(Bits(found),
                      Bits(again ? 0.0f : Expected(x, first, other, r, c)))
                << depth << " " << columns << " " << b << " " << k << " " << c;
          }
        }
      }
    }
  }

  std::vector<float> mean_ = std::vector<float>(kStride, 0.25f);
  std::vector<float> factor_ = std::vector<float>(kStride, 1.375f);
  std::vector<float> bias_ = std::vector<float>(kStride, 0.125f);
  NormalizeMap norm_ = {mean_.data(), factor_.data(), bias_.data()};
};

TEST_F(PackRows, ElementsOfEachType) {
  for (bool normal : {false, true}) {
    Expect<float>(DType::kF32, normal, false, false);
    Expect<half>(DType::kF16, normal, false, false);
    Expect<bfloat16>(DType::kBF16, normal, false, false);
  }
}

TEST_F(PackRows, PairsWithOthersOrZeros) {
  for (bool normal : {false, true}) {
    Expect<bfloat16>(DType::kBF16, normal, true, true);
    Expect<bfloat16>(DType::kBF16, normal, true, false);
  }
}

TEST_F(PackRows, BlocksOfPairs) {
  for (int64_t depth : {1, 3, 7, 14, 16, 17, 29, 31, 37, 56}) {
    for (int64_t piece : {1, 7, 16, 60}) {
      ExpectBlocks(depth, piece, /*has_second=*/piece != 7);
    }
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
