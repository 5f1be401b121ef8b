// What kernels of maximum pooling of channels-last images share: the channels
// of an element are neighbours, so that vectors of them are compared and added
// up where they lie.
#ifndef HALFTONE_KERNELS_CPU_POOL_PIXELS_H_
#define HALFTONE_KERNELS_CPU_POOL_PIXELS_H_

#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/common/pool_shape.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/low_vector.h"

namespace halftone {
namespace kernels {

// Bytes of places from and to a vector of them.
template <Isa kIsa>
struct PlacesOf {
  static void Load(const uint8_t* from, int32_t* places) {
    for (int k = 0; k < kVector; ++k) places[k] = from[k];
  }
  static void Store(const int32_t* places, uint8_t* to) {
    for (int k = 0; k < kVector; ++k) to[k] = static_cast<uint8_t>(places[k]);
  }
};

#ifdef HT_ISA_X86
// The compiler converts so few bytes one by one.
template <>
struct PlacesOf<Isa::kAvx2> {
  HT_TARGET_AVX2 static void Load(const uint8_t* from, int32_t* places) {
    const __m128i bytes =
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(places),
                        _mm256_cvtepu8_epi32(bytes));
  }
  HT_TARGET_AVX2 static void Store(const int32_t* places, uint8_t* to) {
    const __m256i v =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places));
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v),
                                           _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to),
                     _mm_packus_epi16(words, words));
  }
};
#endif  // HT_ISA_X86

// The widest whose vectors are Vector's.
constexpr Isa Narrowed(Isa isa) {
  return isa == Isa::kAvx512 ? Isa::kAvx2 : isa;
}

// Vectors of f32 from and to elements of type T.
template <typename T, Isa kIsa>
struct VectorsOf {
  using Low = LowVector<Narrowed(kIsa)>;
  using Places = PlacesOf<Narrowed(kIsa)>;
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Load(const T* from, Vector* v) {
    if constexpr (std::is_same_v<T, float>) {
      *v = VectorAt(from);
    } else {
      Low::Load(from, reinterpret_cast<float*>(v));
    }
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Store(const Vector& v, T* to) {
    if constexpr (std::is_same_v<T, float>) {
      VectorAt(to) = v;
    } else {
      Low::Store(reinterpret_cast<const float*>(&v), to);
    }
  }
};

// Elements of a window inside its image, at most kNoArgmax: where they lie from
// the window's beginning on, row by row with their places, and, where that is
// asked for, column by column.
struct PixelTaps {
  int count = 0;
  int64_t by_row[kNoArgmax], by_column[kNoArgmax];
  int32_t places[kNoArgmax];

  // `rows` and `columns`: from the window's beginning on.
  void Fill(const PoolShape& shape, const Range& rows, const Range& columns,
            bool also_by_column) {
    const auto at = [&](int64_t i, int64_t j) {
      return i * shape.InRow() + j * shape.channels;
    };
    count = 0;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        places[count] = static_cast<int32_t>(i * shape.w.kernel + j);
        by_row[count++] = at(i, j);
      }
    }
    int n = 0;
    for (int64_t j = columns.begin; also_by_column && j < columns.end; ++j) {
      for (int64_t i = rows.begin; i < rows.end; ++i) by_column[n++] = at(i, j);
    }
  }
};

// body(taps, begin, window) for the windows of line `oh`, the last one first,
// as pool_grad.cc adds up what they give: `begin` is where a window begins in
// an image whose first element is 0, `window` its first channel's place in the
// line.
template <typename Body>
inline void ForPixelWindows(const PoolShape& shape, int64_t oh,
                            bool also_by_column, const Body& body) {
  const PoolDim &h = shape.h, &w = shape.w;
  const auto inside = [](const Range& range, int64_t begin) {
    return Range{range.begin - begin, range.end - begin};
  };
  const int64_t y = oh * h.stride - h.before;
  const Range rows = inside(h.Window(oh), y);
  PixelTaps taps;
  Range before = {0, 0};
  for (int64_t ow = w.out - 1; ow >= 0; --ow) {
    const int64_t x = ow * w.stride - w.before;
    const Range columns = inside(w.Window(ow), x);
    if (ow == w.out - 1 || columns.begin != before.begin ||
        columns.end != before.end) {
      taps.Fill(shape, rows, columns, also_by_column);
      before = columns;
    }
    body(taps, y * shape.InRow() + x * shape.channels, ow * shape.channels);
  }
}

// A pixel gathers from the windows that hold it and whose maximum it is, in the
// order of pool_grad.cc.
template <typename T>
class PixelsGather {
 public:
  explicit PixelsGather(const PoolShape& shape)
      : shape_(shape), lines_(LinesOver(shape)) {
    for (int64_t x = 0; x < shape.w.in; ++x) {
      columns_.push_back(shape.w.WindowsOver(x));
    }
  }

  // Row y of an image's gradient; `grad` and `argmax`: of all its windows. For
  // bodies of ForIsa.
  template <Isa kIsa>
  void Row(int64_t y, const T* grad, const uint8_t* argmax, T* x_grad) const {
    Window over[kNoArgmax];
    for (int64_t x = 0; x < shape_.w.in; ++x, x_grad += shape_.channels) {
      const Range columns = columns_[x];
      int n = 0;
      for (const LineOver& line : lines_[y]) {
        // The last window first.
        for (int64_t ow = columns.end - 1; ow >= columns.begin; --ow) {
          const int64_t at = (line.line * shape_.w.out + ow) * shape_.channels;
          const int64_t j = x - ow * shape_.w.stride + shape_.w.before;
          over[n++] = {grad + at, argmax + at,
                       static_cast<int32_t>(line.place + j)};
        }
      }
      Pixel<VectorsOf<T, kIsa>>(over, n, x_grad);
    }
  }

 private:
  // A window that holds a pixel, and that pixel's place in it.
  struct Window {
    const T* grad;
    const uint8_t* argmax;
    int32_t place;
  };

  template <typename Vectors>
  void Pixel(const Window* over, int n, T* x_grad) const {
    int64_t c = 0;
    for (; c + 4 * kVector <= shape_.channels; c += 4 * kVector) {
      GatherVectors<Vectors, 4>(over, n, c, x_grad + c);
    }
    for (; c + kVector <= shape_.channels; c += kVector) {
      GatherVectors<Vectors, 1>(over, n, c, x_grad + c);
    }
    for (; c < shape_.channels; ++c) {
      float sum = 0;
      for (int i = 0; i < n; ++i) {
        const float grad = static_cast<float>(over[i].grad[c]);
        sum += over[i].argmax[c] == over[i].place ? grad : 0.0f;
      }
      x_grad[c] = static_cast<T>(sum);
    }
  }

  template <typename Vectors, int kVectors>
  static void GatherVectors(const Window* over, int n, int64_t c, T* x_grad) {
    Vector sums[kVectors] = {}, grad;
    VectorMask places;
    for (int i = 0; i < n; ++i) {
      const T* const grads = over[i].grad + c;
      const uint8_t* const argmax = over[i].argmax + c;
      const VectorMask place = over[i].place - VectorMask{};
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        Vectors::Load(grads + k * kVector, &grad);
        Vectors::Places::Load(argmax + k * kVector,
                              reinterpret_cast<int32_t*>(&places));
        sums[k] += Vector((places == place) & VectorMask(grad));
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      Vectors::Store(sums[k], x_grad + k * kVector);
    }
  }

  PoolShape shape_;
  std::vector<std::vector<LineOver>> lines_;  // over each row
  std::vector<Range> columns_;                // windows over each
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_POOL_PIXELS_H_
