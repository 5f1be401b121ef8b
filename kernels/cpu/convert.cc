#include "kernels/cpu/convert.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "graph/base/check.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/low_vector.h"

namespace halftone {
namespace kernels {
namespace {

// One element after the other, as the types' own conversions do it.
template <typename From, typename To>
void ConvertEach(const From* from, To* to, int64_t n, Isa isa) {
  ForIsa(isa, [=] {
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<To>(from[i]);
    }
  });
}

// Whole vectors, the last one of the rest and elements that were converted
// already.
template <int kSize, typename From, typename To, typename Convert>
inline void ConvertVectors(const From* from, To* to, int64_t n,
                           const Convert& convert) {
  if (n < kSize) {
#pragma GCC unroll 1
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
    return;
  }
  int64_t i = 0;
#pragma GCC unroll 4
  for (; i + kSize <= n; i += kSize) convert(from + i, to + i);
  if (i < n) convert(from + n - kSize, to + n - kSize);
}
template <typename T>
void WidenVectors(const T* from, float* to, int64_t n, Isa isa) {
  // Who converts a block does something else before the next one: that is
  // fetched meanwhile.
  constexpr int64_t kAhead = 2048;
  ForIsa(isa, [=](auto tag) {
    using Low = LowVector<decltype(tag)::value>;
    ConvertVectors<Low::kSize>(from, to, n, [](const T* x, float* y) {
      __builtin_prefetch(x + kAhead);
      Low::Load(x, y);
    });
  });
}
template <typename T>
void NarrowVectors(const float* from, T* to, int64_t n, Isa isa) {
  ForIsa(isa, [=](auto tag) {
    using Low = LowVector<decltype(tag)::value>;
    constexpr int kSize = Low::kSize;
    if constexpr (tag == Isa::kAvx512 && std::is_same<T, bfloat16>::value) {
      if (n >= 2 * kSize) {
        return ConvertVectors<2 * kSize>(from, to, n, [](const float* x, T* y) {
          Low::StoreTwo(x, x + kSize, y);
        });
      }
    }
    ConvertVectors<kSize>(from, to, n,
                          [](const float* x, T* y) { Low::Store(x, y); });
  });
}

}  // namespace

void ToFloat(const half* from, float* to, int64_t n, Isa isa) {
  WidenVectors(from, to, n, isa);
}
void ToFloat(const bfloat16* from, float* to, int64_t n, Isa isa) {
  WidenVectors(from, to, n, isa);
}
void FromFloat(const float* from, half* to, int64_t n, Isa isa) {
  NarrowVectors(from, to, n, isa);
}
void FromFloat(const float* from, bfloat16* to, int64_t n, Isa isa) {
  NarrowVectors(from, to, n, isa);
}

void ToFloat(const float* from, float* to, int64_t n, Isa) {
  if (from != to && n > 0) memcpy(to, from, n * sizeof(float));
}

void FromFloat(const float* from, float* to, int64_t n, Isa) {
  if (from != to && n > 0) memcpy(to, from, n * sizeof(float));
}

void ToFloat(DType dtype, const void* from, float* to, int64_t n) {
  switch (dtype) {
    case DType::kF16:
      return ToFloat(static_cast<const half*>(from), to, n);
    case DType::kBF16:
      return ToFloat(static_cast<const bfloat16*>(from), to, n);
    case DType::kF32:
      return ToFloat(static_cast<const float*>(from), to, n);
    default:
      using Others = TypeList<double, int32_t, int64_t, uint8_t, bool>;
      DispatchType(Others(), dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        ConvertEach(static_cast<const T*>(from), to, n, HostIsa());
      });
  }
}

void FromFloat(DType dtype, const float* from, void* to, int64_t n) {
  DispatchType(FloatTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    FromFloat(from, static_cast<T*>(to), n);
  });
}

void RoundTo(DType dtype, float* x, int64_t n) {
  if (dtype == DType::kF32) return;
  alignas(64) char stored[kConvertBlock * sizeof(half)];
  for (int64_t at = 0; at < n; at += kConvertBlock) {
    const int64_t part = std::min(kConvertBlock, n - at);
    FromFloat(dtype, x + at, stored, part);
    ToFloat(dtype, stored, x + at, part);
  }
}

}  // namespace kernels
}  // namespace halftone
