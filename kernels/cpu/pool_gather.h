// The gradient of maximum pooling of channels-last images from the places of
// the maxima: vectors of channels are gathered pixel by pixel.
#ifndef HALFTONE_KERNELS_CPU_POOL_GATHER_H_
#define HALFTONE_KERNELS_CPU_POOL_GATHER_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/base/attributes.h"
#include "kernels/common/pool_shape.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/pool_pixels.h"

namespace halftone {
namespace kernels {

// A pixel gathers from the windows that hold it and whose maximum it is, in the
// order of pool_grad.cc.
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
  template <Isa kIsa, typename T>
  void Row(int64_t y, const T* grad, const uint8_t* argmax, T* x_grad) const {
    Pixels<kIsa>(y, {0, shape_.w.in}, {0, shape_.channels}, grad, argmax,
                 x_grad);
  }
  // Pixels of it, and channels of each, without gaps.
  template <Isa kIsa, typename T>
  void Pixels(int64_t y, Range pixels, Range channels, const T* grad,
              const uint8_t* argmax, T* x_grad) const {
    const std::vector<LineOver>& lines = lines_[y];
    const int64_t n = channels.size();
    grad += channels.begin;
    argmax += channels.begin;
    if (lines.size() == 1 && shape_.w.kernel <= shape_.w.stride) {
      return Apart<kIsa>(lines[0], pixels, n, grad, argmax, x_grad);
    }
    Window<T> over[kNoArgmax];
    for (int64_t x = pixels.begin; x < pixels.end; ++x, x_grad += n) {
      const Range columns = columns_[x];
      int windows = 0;
      for (const LineOver& line : lines) {
        // The last window first.
        for (int64_t ow = columns.end - 1; ow >= columns.begin; --ow) {
          over[windows++] = WindowOver(line, ow, x, grad, argmax);
        }
      }
      Pixel<kIsa>(over, windows, n, x_grad);
    }
  }

 private:
  // A window that holds a pixel, and that pixel's place in it.
  template <typename T>
  struct Window {
    const T* grad;
    const uint8_t* argmax;
    int32_t place;
  };

  // Window `ow` of a line over pixel x of a row.
  template <typename T>
  Window<T> WindowOver(const LineOver& line, int64_t ow, int64_t x,
                       const T* grad, const uint8_t* argmax) const {
    const int64_t at = (line.line * shape_.w.out + ow) * shape_.channels;
    const int64_t j = x - ow * shape_.w.stride + shape_.w.before;
    return {grad + at, argmax + at, static_cast<int32_t>(line.place + j)};
  }

  // Pixels that one window holds at most: a window's side by side.
  template <Isa kIsa, typename T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Apart(const LineOver& line, Range pixels,
                                          int64_t n, const T* grad,
                                          const uint8_t* argmax,
                                          T* x_grad) const {
    for (int64_t x = pixels.begin; x < pixels.end;) {
      const Range columns = columns_[x];
      int64_t end = x + 1;
      if (columns.size() <= 0) {
        std::fill_n(x_grad, n, static_cast<T>(0.0f));
      } else {
        const PoolDim& w = shape_.w;
        const int64_t window = columns.begin * w.stride - w.before;
        end = std::min(pixels.end, window + w.kernel);
        int64_t windows = 1;
        if (x == window && w.kernel == w.stride) {
          windows = std::clamp<int64_t>((pixels.end - x) / w.kernel, 1,
                                        w.out - columns.begin);
        }
        Spread<kIsa>(WindowOver(line, columns.begin, x, grad, argmax), windows,
                     end - x, n, x_grad);
        end += (windows - 1) * w.kernel;
      }
      x_grad += (end - x) * n;
      x = end;
    }
  }

  // The gradients of windows side by side to `pixels` of each, from that of the
  // first one's place on.
  template <Isa kIsa, typename T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Spread(const Window<T>& window,
                                           int64_t windows, int64_t pixels,
                                           int64_t n, T* x_grad) const {
    const int64_t channels = shape_.channels, step = pixels * n;
    for (int64_t j = 0; j < pixels; ++j) {
      const auto place = static_cast<uint8_t>(window.place + j);
      T* const to = x_grad + j * n;
      int64_t c = 0;
#ifdef HT_ISA_X86
      if constexpr (kIsa == Isa::kAvx512) {
        for (; c + 16 <= n; c += 16) {
          SpreadWide(window.grad + c, window.argmax + c, channels, windows,
                     place, to + c, step);
        }
      }
#endif  // HT_ISA_X86
      for (; c < n; ++c) {
        for (int64_t i = 0; i < windows; ++i) {
          const int64_t at = i * channels + c;
          const float grad = window.argmax[at] == place
                                 ? static_cast<float>(window.grad[at])
                                 : 0.0f;
          to[i * step + c] = static_cast<T>(0.0f + grad);
        }
      }
    }
  }

  template <Isa kIsa, typename T>
  static void Pixel(const Window<T>* over, int n, int64_t channels, T* x_grad) {
    using Vectors = VectorsOf<T, kIsa>;
    int64_t c = 0;
#ifdef HT_ISA_X86
    if constexpr (kIsa == Isa::kAvx512) {
      for (; c + 64 <= channels; c += 64) GatherWide<4>(over, n, c, x_grad + c);
      for (; c + 16 <= channels; c += 16) GatherWide<1>(over, n, c, x_grad + c);
    }
#endif  // HT_ISA_X86
    for (; c + 4 * kVector <= channels; c += 4 * kVector) {
      GatherVectors<Vectors, 4>(over, n, c, x_grad + c);
    }
    for (; c + kVector <= channels; c += kVector) {
      GatherVectors<Vectors, 1>(over, n, c, x_grad + c);
    }
    for (; c < channels; ++c) {
      float sum = 0;
      for (int i = 0; i < n; ++i) {
        const float grad = static_cast<float>(over[i].grad[c]);
        sum += over[i].argmax[c] == over[i].place ? grad : 0.0f;
      }
      x_grad[c] = static_cast<T>(sum);
    }
  }

#ifdef HT_ISA_X86
  // Of 16 channels, whose places are compared as bytes: to a pixel of each
  // window, `to_step` apart.
  template <typename T>
  HT_TARGET_AVX512 static void SpreadWide(const T* grad, const uint8_t* argmax,
                                          int64_t step, int64_t windows,
                                          uint8_t place, T* to,
                                          int64_t to_step) {
    const __m128i places = _mm_set1_epi8(static_cast<char>(place));
    for (int64_t i = 0; i < windows; ++i) {
      const __mmask16 found = _mm_cmpeq_epi8_mask(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(argmax)), places);
      if constexpr (sizeof(T) == sizeof(float)) {
        _mm512_storeu_ps(to, _mm512_maskz_add_ps(found, _mm512_setzero_ps(),
                                                 _mm512_loadu_ps(grad)));
      } else {
        const __m256i v =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(grad));
        // Of -0 a 0.
        const __mmask16 given =
            _mm256_mask_cmpneq_epi16_mask(found, v, _mm256_set1_epi16(-0x8000));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                            _mm256_maskz_mov_epi16(given, v));
      }
      grad += step;
      argmax += step;
      to += to_step;
    }
  }

  // The same, of several windows over one pixel.
  template <int kVectors, typename T>
  HT_TARGET_AVX512 static void GatherWide(const Window<T>* over, int n,
                                          int64_t c, T* x_grad) {
    using Low = LowVector<Isa::kAvx512>;
    alignas(64) float lanes[16];
    __m512 sums[kVectors];
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) sums[k] = _mm512_setzero_ps();
    for (int i = 0; i < n; ++i) {
      const auto* argmax = reinterpret_cast<const __m128i*>(over[i].argmax + c);
      const __m128i place = _mm_set1_epi8(static_cast<char>(over[i].place));
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        Low::Load(over[i].grad + c + 16 * k, lanes);
        sums[k] = _mm512_mask_add_ps(
            sums[k], _mm_cmpeq_epi8_mask(_mm_loadu_si128(argmax + k), place),
            sums[k], _mm512_load_ps(lanes));
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      _mm512_store_ps(lanes, sums[k]);
      Low::Store(lanes, x_grad + 16 * k);
    }
  }
#endif  // HT_ISA_X86

  template <typename Vectors, int kVectors, typename T>
  static void GatherVectors(const Window<T>* over, int n, int64_t c,
                            T* x_grad) {
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

#endif  // HALFTONE_KERNELS_CPU_POOL_GATHER_H_
