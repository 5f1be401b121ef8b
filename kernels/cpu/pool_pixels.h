// What kernels of maximum pooling of channels-last images share: the channels
// of an element are neighbours, so that vectors of them are compared and added
// up where they lie.
#ifndef HALFTONE_KERNELS_CPU_POOL_PIXELS_H_
#define HALFTONE_KERNELS_CPU_POOL_PIXELS_H_

#include <cstdint>
#include <type_traits>

#include "absl/base/attributes.h"
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

// body(taps, begin, window, n) for the windows of line `oh`, the last one
// first, as pool_grad.cc adds up what they give: `begin` is where a window
// begins in an image whose first element is 0, `window` its first channel's
// place in the line. n, up to `together`: of windows side by side with the same
// taps, of which that is the first one.
template <typename Body>
inline void ForPixelWindows(const PoolShape& shape, int64_t oh,
                            bool also_by_column, int64_t together,
                            const Body& body) {
  const PoolDim &h = shape.h, &w = shape.w;
  const auto inside = [](const Range& range, int64_t begin) {
    return Range{range.begin - begin, range.end - begin};
  };
  const int64_t y = oh * h.stride - h.before;
  const Range rows = inside(h.Window(oh), y);
  PixelTaps taps;
  Range before = {0, 0};
  const auto columns_of = [&](int64_t ow) {
    return inside(w.Window(ow), ow * w.stride - w.before);
  };
  for (int64_t end = w.out; end > 0;) {
    const Range columns = columns_of(end - 1);
    const auto is_same = [&](const Range& other) {
      return columns.begin == other.begin && columns.end == other.end;
    };
    if (end == w.out || !is_same(before)) {
      taps.Fill(shape, rows, columns, also_by_column);
      before = columns;
    }
    int64_t ow = end - 1;
    while (ow > 0 && end - ow < together && is_same(columns_of(ow - 1))) --ow;
    const int64_t x = ow * w.stride - w.before;
    body(taps, y * shape.InRow() + x * shape.channels, ow * shape.channels,
         end - ow);
    end = ow;
  }
}

// Pixels as they lie; `channel`: of the first lane. Others that PixelsMost
// reads have what this has, for bodies of ForIsa.
struct StoredPixels {
  // Whether there may be numbers below 0, or -0.
  static constexpr bool kNegative = true;

  template <typename Low, typename T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Load(const T* x, int64_t,
                                         float* lanes) const {
    Low::Load(x, lanes);
  }
  template <typename T>
  float At(const T* x, int64_t) const {
    return static_cast<float>(*x);
  }
};

// Window by window, first the maxima of a vector of channels, then their
// places. Of numbers that are not negative equals are the same: both come at
// once.
template <typename T>
class PixelsMost {
 public:
  explicit PixelsMost(const PoolShape& shape) : shape_(shape) {}

  // A line of windows; `x`: of the image's first element.
  template <typename Pixels>
  void Line(int64_t oh, const T* x, T* out, uint8_t* argmax,
            const Pixels& pixels) const {
    // A window of one vector waits for itself: two of them.
    const int64_t together = shape_.channels == 16 ? 2 : 1;
    ForIsa([&, x, out, argmax](auto isa) {
      ForPixelWindows(
          shape_, oh, /*also_by_column=*/true, together,
          [&](const PixelTaps& taps, int64_t begin, int64_t window, int64_t n) {
            RunWindows<decltype(isa)::value>(taps, n, x + begin, out + window,
                                             argmax + window, pixels);
          });
    });
  }

 private:
  // ---- For bodies of ForIsa.

  template <Isa kIsa, typename Pixels>
  void RunWindows(const PixelTaps& taps, int64_t n, const T* x, T* out,
                  uint8_t* argmax, const Pixels& pixels) const {
    const int64_t channels = shape_.channels;
    const int64_t step = shape_.w.stride * channels;
#ifdef HT_ISA_X86
    if constexpr (kIsa == Isa::kAvx512) {
      if (n == 2 && taps.count > 0) {
        return RunWide<2>(taps, {step, channels, 0}, x, 0, out, argmax, pixels);
      }
    }
#endif  // HT_ISA_X86
    for (int64_t i = 0; i < n; ++i) {
      RunWindow<kIsa>(taps, x + i * step, out + i * channels,
                      argmax + i * channels, pixels);
    }
  }

  template <Isa kIsa, typename Pixels>
  void RunWindow(const PixelTaps& taps, const T* x, T* out, uint8_t* argmax,
                 const Pixels& pixels) const {
    const int64_t channels = shape_.channels;
    int64_t c = 0;
#ifdef HT_ISA_X86
    if constexpr (kIsa == Isa::kAvx512) {
      constexpr WideSteps kNext = {16, 16, 16};
      for (; taps.count > 0 && c + 64 <= channels; c += 64) {
        RunWide<4>(taps, kNext, x + c, c, out + c, argmax + c, pixels);
      }
      for (; taps.count > 0 && c + 32 <= channels; c += 32) {
        RunWide<2>(taps, kNext, x + c, c, out + c, argmax + c, pixels);
      }
      for (; taps.count > 0 && c + 16 <= channels; c += 16) {
        RunWide<1>(taps, kNext, x + c, c, out + c, argmax + c, pixels);
      }
    }
#endif  // HT_ISA_X86
    for (; taps.count > 0 && c + 4 * kVector <= channels; c += 4 * kVector) {
      RunVectors<kIsa, 4>(taps, x + c, c, out + c, argmax + c, pixels);
    }
    for (; taps.count > 0 && c + kVector <= channels; c += kVector) {
      RunVectors<kIsa, 1>(taps, x + c, c, out + c, argmax + c, pixels);
    }
    for (; c < channels; ++c) {
      RunChannel(taps, x + c, c, out + c, argmax + c, pixels);
    }
  }

  // Channels from `channel` on, where the pointers are.
  template <Isa kIsa, int kVectors, typename Pixels>
  void RunVectors(const PixelTaps& taps, const T* x, int64_t channel, T* out,
                  uint8_t* argmax, const Pixels& pixels) const {
    using Vectors = VectorsOf<T, kIsa>;
    Vector most[kVectors], sums[kVectors], v;
    const auto load = [&](int64_t at, int k, Vector* to) {
      pixels.template Load<typename Vectors::Low>(x + at + k * kVector,
                                                  channel + k * kVector,
                                                  reinterpret_cast<float*>(to));
    };
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      load(taps.by_column[0], k, &most[k]);
      sums[k] = most[k];
    }
    for (int i = 1; i < taps.count; ++i) {
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        load(taps.by_column[i], k, &v);
        most[k] = v > most[k] ? v : most[k];
        sums[k] += v;  // NaN wherever an element is
      }
    }
    VectorMask places[kVectors] = {}, nans = {};
    for (int i = taps.count - 1; i >= 0; --i) {
      const VectorMask place = taps.places[i] - VectorMask{};
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        load(taps.by_row[i], k, &v);
        places[k] = v == most[k] ? place : places[k];
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      nans |= sums[k] != sums[k];
      Vectors::Store(most[k], out + k * kVector);
      Vectors::Places::Store(reinterpret_cast<const int32_t*>(&places[k]),
                             argmax + k * kVector);
    }
    int any = 0;
    for (int k = 0; k < kVector; ++k) any |= nans[k];
    for (int c = 0; any != 0 && c < kVectors * kVector; ++c) {
      RunChannel(taps, x + c, channel + c, out + c, argmax + c, pixels);
    }
  }

#ifdef HT_ISA_X86
  // From a vector to the next one: in the image, in the result, and channels.
  struct WideSteps {
    int64_t x, out, channel;
  };
  // Vectors of 16 channels, whose places are chosen as bytes.
  template <int kVectors, typename Pixels>
  HT_TARGET_AVX512 void RunWide(const PixelTaps& taps, const WideSteps& step,
                                const T* x, int64_t channel, T* out,
                                uint8_t* argmax, const Pixels& pixels) const {
    using Low = LowVector<Isa::kAvx512>;
    constexpr bool kNegative = Pixels::kNegative;
    alignas(64) float lanes[16];
    const auto load = [&](int64_t at, int k) {
      pixels.template Load<Low>(x + at + k * step.x, channel + k * step.channel,
                                lanes);
    };
    __m512 most[kVectors], sums[kVectors];
    __m128i places[kVectors];
    const int64_t* const order = kNegative ? taps.by_column : taps.by_row;
    const auto first = static_cast<char>(taps.places[0]);
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      load(order[0], k);
      sums[k] = most[k] = _mm512_load_ps(lanes);
      places[k] = _mm_set1_epi8(first);
    }
    for (int i = 1; i < taps.count; ++i) {
      const __m128i place = _mm_set1_epi8(static_cast<char>(taps.places[i]));
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        load(order[i], k);
        const __m512 v = _mm512_load_ps(lanes);
        if (!kNegative) {
          const __mmask16 more = _mm512_cmp_ps_mask(v, most[k], _CMP_GT_OQ);
          places[k] = _mm_mask_mov_epi8(places[k], more, place);
        }
        // Of equals and NaNs the second.
        most[k] = _mm512_maskz_max_ps(0xffff, v, most[k]);
        sums[k] = _mm512_add_ps(sums[k], v);  // NaN wherever an element is
      }
    }
    for (int i = taps.count - 1; kNegative && i >= 0; --i) {
      const __m128i place = _mm_set1_epi8(static_cast<char>(taps.places[i]));
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        load(taps.by_row[i], k);
        const __mmask16 same =
            _mm512_cmp_ps_mask(_mm512_load_ps(lanes), most[k], _CMP_EQ_OQ);
        places[k] = _mm_mask_mov_epi8(places[k], same, place);
      }
    }
    unsigned nans = 0;
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      nans |= _mm512_cmp_ps_mask(sums[k], sums[k], _CMP_UNORD_Q);
      _mm512_store_ps(lanes, most[k]);
      Low::StoreExact(lanes, out + k * step.out);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(argmax + k * step.out),
                       places[k]);
    }
    for (int i = 0; nans != 0 && i < 16 * kVectors; ++i) {
      const int64_t k = i / 16, c = i % 16, to = k * step.out + c;
      RunChannel(taps, x + k * step.x + c, channel + k * step.channel + c,
                 out + to, argmax + to, pixels);
    }
  }
#endif  // HT_ISA_X86

  template <typename Pixels>
  void RunChannel(const PixelTaps& taps, const T* x, int64_t channel, T* out,
                  uint8_t* argmax, const Pixels& pixels) const {
    *argmax = kNoArgmax;
    float most = shape_.of_nothing;
    for (int i = 0; i < taps.count; ++i) {
      const float v = pixels.At(x + taps.by_column[i], channel);
      most = i == 0 ? v : Larger()(most, v);
    }
    for (int i = taps.count - 1; i >= 0; --i) {
      const float v = pixels.At(x + taps.by_row[i], channel);
      const bool same = v == most || (v != v && most != most);
      if (same) *argmax = static_cast<uint8_t>(taps.places[i]);
    }
    *out = static_cast<T>(most);
  }

  PoolShape shape_;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_POOL_PIXELS_H_
