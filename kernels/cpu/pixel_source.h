// What is packed or transformed of the pixels of channels-last images: by
// vectors of channels, with what is fused before. For bodies of ForIsa.
#ifndef HALFTONE_KERNELS_CPU_PIXEL_SOURCE_H_
#define HALFTONE_KERNELS_CPU_PIXEL_SOURCE_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "graph/base/check.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/pack_rows.h"

namespace halftone {
namespace kernels {

// Of rows of T: elements as f32, or pairs of them.
template <typename T, bool kNorm, bool kPairs>
struct PixelSource {
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
    if constexpr (kNorm) NormalReluLanes<Low, T>(norm, c, to);
  }
  float One(const T* from, int64_t c) const {
    const float x = static_cast<float>(*from);
    if constexpr (!kNorm) return x;
    return NormalRelu<T>(norm, c, x);
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

// What rows a loop is given: it is compiled for no others.
struct AllPixels {
  using Types = FloatTypes;
  static constexpr bool kNorm = true, kSingle = true, kPairs = true;
};
struct PlainPixels : AllPixels {
  static constexpr bool kNorm = false;
};
struct PlainPairs : PlainPixels {
  static constexpr bool kSingle = false;
};
struct SinglePixels : AllPixels {
  static constexpr bool kPairs = false;
};

// Calls body(source) with that of the rows, which have to be of `Kind`.
template <typename Kind = AllPixels, typename Body>
inline void ForPixelSource(const PixelRows& x, const Body& body) {
  HT_CHECK((Kind::kNorm || x.norm == nullptr) &&
               (x.pairs ? Kind::kPairs : Kind::kSingle),
           "rows of another kind than the loop is for");
  DispatchType(typename Kind::Types(), x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto call = [&](auto norm, auto pairs) {
      PixelSource<T, decltype(norm)::value, decltype(pairs)::value> source = {
          static_cast<const T*>(x.data), static_cast<const T*>(x.second), {}};
      if constexpr (decltype(norm)::value) source.norm = *x.norm;
      body(source);
    };
    const auto call_of = [&](auto pairs) {
      if constexpr (Kind::kNorm) {
        if (x.norm != nullptr) return call(std::true_type(), pairs);
      }
      call(std::false_type(), pairs);
    };
    if constexpr (Kind::kPairs && std::is_same<T, bfloat16>::value) {
      if (x.pairs) return call_of(std::true_type());
    }
    if constexpr (Kind::kSingle) call_of(std::false_type());
  });
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_PIXEL_SOURCE_H_
