// What kernels of gradients of maximum pooling of images of one channel share:
// rows that gather from windows whose places of maxima are known.
#ifndef HALFTONE_KERNELS_CPU_POOL_ROWS_H_
#define HALFTONE_KERNELS_CPU_POOL_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/common/pool_shape.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"

#ifdef HT_ISA_X86
#include <immintrin.h>
#endif

namespace halftone {
namespace kernels {

using One = std::integral_constant<int64_t, 1>;
using Two = std::integral_constant<int64_t, 2>;

// body(stride): known to the compiler for the usual ones.
template <typename Body>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline auto WithStride(int64_t stride,
                                                    const Body& body) {
  return stride == 1 ? body(One()) : stride == 2 ? body(Two()) : body(stride);
}

// Windows that hold, each at the same place, the columns of a phase: where the
// first column's lies in a plane's lines. The place, and it in each of four
// bytes.
struct RowTap {
  int64_t at;
  int32_t place;
  uint32_t bytes;
};

// Those of all phases of all rows, one behind another, and where each one's
// begin.
struct RowTaps {
  std::vector<RowTap> taps;
  std::vector<size_t> begins;

  const RowTap* Begin(int64_t phase) const {
    return taps.data() + begins[phase];
  }
};

// Sums of rows of a plane. For bodies of ForIsa.
template <Isa kIsa>
struct RowSums {
  using Place = int32_t;
  using Mask = VectorMask __attribute__((aligned(4), may_alias));

  // What n columns of a phase get; n: twice kVector times a whole number.
  static void OfPhase(const Place* places, const float* grad,
                      const RowTap* begin, const RowTap* end, int64_t n,
                      float* to) {
    int64_t t = 0;
    for (; t + 4 * kVector <= n; t += 4 * kVector) {
      Sum<4>(places + t, grad + t, begin, end, to + t);
    }
    if (t < n) Sum<2>(places + t, grad + t, begin, end, to + t);
  }

 private:
  template <int kVectors>
  static void Sum(const Place* places, const float* grad, const RowTap* begin,
                  const RowTap* end, float* to) {
    Vector sums[kVectors] = {};
    for (const RowTap* tap = begin; tap < end; ++tap) {
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        const int64_t at = tap->at + k * kVector;
        const VectorMask same = MaskAt(places + at) == tap->place;
        sums[k] += Vector(same & MaskAt(grad + at));
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) VectorAt(to + k * kVector) = sums[k];
  }
  static const Mask& MaskAt(const void* x) {
    return *static_cast<const Mask*>(x);
  }
};

#ifdef HT_ISA_X86
// Columns of a row of two phases, 16 of each.
struct Columns {
  HT_TARGET_AVX512 Columns(__m512 even, __m512 odd)
      : first(_mm512_permutex2var_ps(
            even,
            _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22,
                              7, 23),
            odd)),
        second(_mm512_permutex2var_ps(
            even,
            _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
                              30, 15, 31),
            odd)) {}

  __m512 first, second;
};

// Places are bytes: those of 32 windows are compared at once.
template <>
struct RowSums<Isa::kAvx512> {
  using Place = uint8_t;

  HT_TARGET_AVX512 static void OfPhase(const Place* places, const float* grad,
                                       const RowTap* begin, const RowTap* end,
                                       int64_t n, float* to) {
    for (int64_t t = 0; t < n; t += 32) {
      __m512 sums[2];
      Sum(places + t, grad + t, begin, end, sums);
      _mm512_storeu_ps(to + t, sums[0]);
      if (t + 16 < n) _mm512_storeu_ps(to + t + 16, sums[1]);
    }
  }

  // The n columns of each of the rows, of two phases.
  HT_TARGET_AVX512 static void OfPairs(const Place* places, const float* grad,
                                       const RowTaps& taps, int64_t rows,
                                       int64_t n, float* to) {
    for (int64_t row = 0; row < rows; ++row, to += n) {
      const RowTap *begin = taps.Begin(2 * row),
                   *middle = taps.Begin(2 * row + 1),
                   *end = taps.Begin(2 * row + 2);
      for (int64_t t = 0; 2 * t < n; t += 32) {
        __m512 even[2], odd[2];
        Sum(places + t, grad + t, begin, middle, even);
        Sum(places + t, grad + t, middle, end, odd);
#pragma GCC unroll 2
        for (int k = 0; k < 2; ++k) {
          const int64_t at = 2 * t + 32 * k;
          const Columns columns(even[k], odd[k]);
          Store(columns.first, n - at, to + at);
          Store(columns.second, n - at - 16, to + at + 16);
        }
      }
    }
  }

 private:
  HT_TARGET_AVX512 static void Sum(const Place* places, const float* grad,
                                   const RowTap* begin, const RowTap* end,
                                   __m512* sums) {
    __m512 low = _mm512_setzero_ps(), high = low;
    for (const RowTap* tap = begin; tap < end; ++tap) {
      const auto* found = reinterpret_cast<const __m256i*>(places + tap->at);
      const __mmask32 same = _mm256_cmpeq_epi8_mask(
          _mm256_loadu_si256(found),
          _mm256_set1_epi32(static_cast<int32_t>(tap->bytes)));
      const auto rest = static_cast<__mmask16>(_kshiftri_mask32(same, 16));
      const float* grads = grad + tap->at;
      low = _mm512_mask_add_ps(low, static_cast<__mmask16>(same), low,
                               _mm512_loadu_ps(grads));
      high = _mm512_mask_add_ps(high, rest, high, _mm512_loadu_ps(grads + 16));
    }
    sums[0] = low;
    sums[1] = high;
  }
  HT_TARGET_AVX512 static void Store(__m512 v, int64_t left, float* to) {
    if (left >= 16) {
      _mm512_storeu_ps(to, v);
    } else if (left > 0) {
      _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1 << left) - 1), v);
    }
  }
};
#endif  // HT_ISA_X86

// An element of the image gathers from the windows that hold it, in the order
// of pool_grad.cc. Element j of neighbouring windows lies `stride` columns
// apart, so that the columns 0, stride, 2 * stride ... of a row, a phase, get
// theirs from neighbours.
class RowsGather {
 public:
  explicit RowsGather(const PoolShape& shape)
      : shape_(shape),
        lines_(shape.d.out * shape.h.out),
        // Windows further apart than the row is long have no neighbours.
        stride_(std::max<int64_t>(
            1, std::min(shape.w.stride, shape.w.before + shape.w.in))),
        phase_(Rounded((shape.w.in + stride_ - 1) / stride_)),
        front_(Rounded((shape.w.kernel - 1) / stride_)),
        line_(Rounded(front_ + std::max(phase_ + shape.w.before / stride_ + 1,
                                        shape.w.out))) {
    FillTaps();
  }

  // Of places, which are bytes.
  static bool Supports(const PoolShape& shape) {
    return shape.channels == 1 && !shape.d.adaptive && !shape.h.adaptive &&
           !shape.w.adaptive &&
           shape.d.kernel * shape.h.kernel * shape.w.kernel <= kNoArgmax;
  }

  // Gradients and places of a plane's lines, with windows that there are not,
  // of no gradient and any place, on both sides; a row in phases, and as it is.
  struct Lines {
    float *grad, *places, *phases, *row;
  };
  int64_t ScratchFloats() const {
    return kMore + 2 * lines_ * line_ + kMore + 2 * stride_ * phase_;
  }
  Lines Carve(float* scratch) const {
    Lines lines;
    // Whole cache lines, so that most vectors lie in one.
    const auto at = reinterpret_cast<uintptr_t>(scratch) / sizeof(float);
    lines.grad = scratch + (kMore - at % kMore) % kMore;
    lines.places = lines.grad + lines_ * line_;
    lines.phases = lines.places + lines_ * line_ + kMore;
    lines.row = lines.phases + stride_ * phase_;
    std::fill_n(lines.grad, lines_ * line_, 0.0f);
    return lines;
  }
  // Where line `l` has its first window. Up to kMore places behind its last
  // one may be written before the next line's are.
  static constexpr int64_t kMore = 4 * kVector;
  int64_t At(int64_t l) const { return l * line_ + front_; }

  // ---- For bodies of ForIsa.

  template <Isa kIsa>
  static typename RowSums<kIsa>::Place* Places(const Lines& lines) {
    return reinterpret_cast<typename RowSums<kIsa>::Place*>(lines.places);
  }

  // A line of windows.
  template <typename T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void CopyLine(const T* from, T* to) const {
    const int64_t n = shape_.w.out;
    constexpr size_t kBytes = kVector * sizeof(T);
    int64_t i = 0;
    for (; i + kVector <= n; i += kVector) {
      std::memcpy(to + i, from + i, kBytes);
    }
    if (i > 0 && i < n) {  // some once more
      std::memcpy(to + n - kVector, from + n - kVector, kBytes);
      i = n;
    }
    for (; i < n; ++i) to[i] = from[i];
  }

  // The gradient of a plane.
  template <Isa kIsa>
  void Plane(const Lines& lines, float* x_grad) const {
    WithStride(stride_,
               [&](auto stride) { Rows<kIsa>(lines, stride, x_grad); });
  }

 private:
  static constexpr int64_t kStep = 2 * kVector;
  static int64_t Rounded(int64_t n) { return (n + kStep - 1) / kStep * kStep; }

  // Of the phases of all rows: line by line, the last window first.
  void FillTaps() {
    std::vector<RowTap>& taps = taps_.taps;
    for (const std::vector<LineOver>& lines : LinesOver(shape_)) {
      for (int64_t p = 0; p < stride_; ++p) {
        const int64_t column = p + shape_.w.before;  // of the padded row
        taps_.begins.push_back(taps.size());
        for (const LineOver& over : lines) {
          for (int64_t j = column % stride_; j < shape_.w.kernel;
               j += stride_) {
            const auto place = static_cast<int32_t>(over.place + j);
            taps.push_back({At(over.line) + (column - j) / stride_, place,
                            static_cast<uint32_t>(place) * 0x1010101});
          }
        }
      }
    }
    taps_.begins.push_back(taps.size());
  }

  template <Isa kIsa, typename Stride>
  void Rows(const Lines& lines, Stride stride, float* x_grad) const {
    const auto* places = Places<kIsa>(lines);
    const int64_t rows = shape_.d.in * shape_.h.in;
    const int64_t n = shape_.w.in, written = stride * phase_;
    if constexpr (kIsa == Isa::kAvx512 && std::is_same_v<Stride, Two>) {
      return RowSums<kIsa>::OfPairs(places, lines.grad, taps_, rows, n, x_grad);
    }
    for (int64_t row = 0; row < rows; ++row, x_grad += n) {
      for (int64_t p = 0; p < stride; ++p) {
        RowSums<kIsa>::OfPhase(places, lines.grad,
                               taps_.Begin(row * stride + p),
                               taps_.Begin(row * stride + p + 1), phase_,
                               lines.phases + p * phase_);
      }
      // What goes beyond a row is written again, but for the last ones.
      const bool fits = written <= (rows - row) * n;
      Interleave(lines.phases, stride, fits ? x_grad : lines.row);
      if (!fits) std::copy_n(lines.row, n, x_grad);
    }
  }

  template <typename Stride>
  void Interleave(const float* phases, Stride stride, float* row) const {
    if constexpr (std::is_same_v<Stride, Two>) {
      const int64_t n = phase_;
      for (int64_t t = 0; t < n; t += kVector) {
        const Vector a = VectorAt(phases + t), b = VectorAt(phases + n + t);
        VectorAt(row + 2 * t) =
            __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        VectorAt(row + 2 * t + kVector) =
            __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
      }
    } else {
      for (int64_t p = 0; p < stride; ++p) {
        for (int64_t t = 0; t < phase_; ++t) {
          row[t * stride + p] = phases[p * phase_ + t];
        }
      }
    }
  }

  PoolShape shape_;
  int64_t lines_, stride_;
  int64_t phase_, front_, line_;  // floats of a phase, before a line, of a line
  RowTaps taps_;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_POOL_ROWS_H_
