#include "kernels/cpu/pack_rows.h"

#include <cstring>
#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/small_product.h"
#include "kernels/functors/elementwise.h"

namespace halftone {
namespace kernels {
namespace {

// What is packed of rows of T: elements as f32, or pairs of them.
template <typename T, bool kNorm, bool kPairs>
struct Source {
  const T *first, *second;
  NormalizeMap norm;

  // A vector from element `at` of the memory and column `c` on.
  template <typename Low>
  void Load(int64_t at, int64_t c, float* to) const {
    LoadOf<Low>(first + at, c, to);
    if constexpr (kPairs) {
      float high[Low::kSize];
      if (second != nullptr) {
        LoadOf<Low>(second + at, c, high);
      } else {
        for (int k = 0; k < Low::kSize; ++k) high[k] = 0.0f;
      }
      Join<Low::kSize>(high, to);
    }
  }
  void LoadOne(int64_t at, int64_t c, float* to) const {
    *to = One(first + at, c);
    if constexpr (kPairs) {
      const float high = second != nullptr ? One(second + at, c) : 0.0f;
      Join<1>(&high, to);
    }
  }

 private:
  template <typename Low>
  void LoadOf(const T* from, int64_t c, float* to) const {
    Low::Load(from, to);
    if constexpr (kNorm) {
      NormalizeLanes<Low, T>(norm, c, to);
      ReluOfLanes<Low>(to);
    }
  }
  float One(const T* from, int64_t c) const {
    const float x = static_cast<float>(*from);
    if constexpr (!kNorm) return x;
    return functors::ReluOp()(
        static_cast<float>(static_cast<T>(norm.At(c)(x, x))));
  }
  // Of numbers that are bf16, which are the upper bits of an f32.
  template <int kSize>
  static void Join(const float* high, float* low) {
    uint32_t bits[kSize], high_bits[kSize];
    std::memcpy(bits, low, sizeof(bits));
    std::memcpy(high_bits, high, sizeof(high_bits));
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
    for (int k = 0; k < kSize; ++k) {
      bits[k] = bits[k] >> 16 | (high_bits[k] & 0xffff0000u);
    }
    std::memcpy(low, bits, sizeof(bits));
  }
};

// Calls body(source) with that of the rows.
template <typename Body>
void ForSource(const PixelRows& x, const Body& body) {
  DispatchType(FloatTypes(), x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto call = [&](auto norm, auto pairs) {
      Source<T, decltype(norm)::value, decltype(pairs)::value> source = {
          static_cast<const T*>(x.data), static_cast<const T*>(x.second), {}};
      if (x.norm != nullptr) source.norm = *x.norm;
      body(source);
    };
    using No = std::false_type;
    using Yes = std::true_type;
    if constexpr (std::is_same<T, bfloat16>::value) {
      if (x.pairs) {
        return x.norm != nullptr ? call(Yes(), Yes()) : call(No(), Yes());
      }
    }
    x.norm != nullptr ? call(Yes(), No()) : call(No(), No());
  });
}

}  // namespace

void PackPanels(const PixelRows& x, int64_t rows, int64_t columns,
                int64_t stride, float* to) {
  const int64_t row_stride = x.stride;
  ForSource(x, [=](const auto& source) {
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      const int64_t whole = columns / kPanel * kPanel;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = r * row_stride;
        float* row = to + r * kPanel;
        int64_t c = 0;
        for (; c < whole; c += kPanel, row += stride) {
          for (int64_t i = 0; i < kPanel; i += Low::kSize) {
            float made[Low::kSize];
            source.template Load<Low>(at + c + i, c + i, made);
            Low::Store(made, row + i);
          }
        }
        if (c == columns) continue;
        for (int64_t i = 0; i < kPanel; ++i) {
          row[i] = 0.0f;
          if (c + i < columns) source.LoadOne(at + c + i, c + i, row + i);
        }
      }
    });
  });
}

void PackTiles(const PixelRows& x, int64_t rows, int64_t columns,
               int64_t stride, float* to) {
  const int64_t row_stride = x.stride, tile_rows = TileRows();
  ForSource(x, [=](const auto& source) {
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = r * row_stride;
        const int64_t rest = (rows - r - 1) * row_stride + columns;
        float* tile = to + r * tile_rows;
        for (int64_t c = 0; c < columns; c += tile_rows, tile += stride) {
          // Not beyond the last row, whatever comes there.
          if (c + Low::kSize <= rest) {
            float made[Low::kSize];
            source.template Load<Low>(at + c, c, made);
            Low::Store(made, tile);
            continue;
          }
          for (int64_t i = 0; i < tile_rows && c + i < columns; ++i) {
            source.LoadOne(at + c + i, c + i, tile + i);
          }
        }
      }
    });
  });
}

}  // namespace kernels
}  // namespace halftone
