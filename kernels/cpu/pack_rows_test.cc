#include "kernels/cpu/pack_rows.h"

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
  explicit Image(int64_t salt) {
    for (double x : Eighths(kRows * kStride, salt)) {
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

}  // namespace
}  // namespace kernels
}  // namespace halftone
