// Rows of f32, f16 or bf16 as they lie in memory, a vector at a time, converted
// in registers. For bodies of ForIsa (isa.h) that are told theirs; `Low`:
// LowVector of it (low_vector.h).
#ifndef HALFTONE_KERNELS_CPU_LOW_ROWS_H_
#define HALFTONE_KERNELS_CPU_LOW_ROWS_H_

#include <cstdint>
#include <type_traits>

#include "absl/base/attributes.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/sums.h"

namespace halftone {
namespace kernels {

// Sets the elements of a vector from `first` on to `value`.
template <typename Low>
inline void SetRest(int64_t first, float value, float* v) {
  const int n = static_cast<int>(first);
#pragma GCC unroll 1
  for (int j = 0; j < Low::kSize; ++j) v[j] = j < n ? v[j] : value;
}

// most = x where that is greater, element by element: a NaN is left out.
template <int kSize>
inline void TakeGreater(const float* x, float* most) {
#pragma GCC unroll 1
  for (int j = 0; j < kSize; ++j) most[j] = x[j] > most[j] ? x[j] : most[j];
}

// The largest of a row, NaNs left out; what is behind it is read, too, up to a
// vector's end.
template <typename Low, typename T>
inline float MaxOfLow(const T* row, int64_t n) {
  constexpr int kSize = Low::kSize;
  constexpr float kLowest = -__builtin_inff();
  alignas(64) float most[2 * kSize], v[2 * kSize];
#pragma GCC unroll 1
  for (int j = 0; j < 2 * kSize; ++j) most[j] = kLowest;
  int64_t i = 0;
  for (; i + 2 * kSize <= n; i += 2 * kSize) {
    Low::Load(row + i, v);
    Low::Load(row + i + kSize, v + kSize);
    TakeGreater<kSize>(v, most);
    TakeGreater<kSize>(v + kSize, most + kSize);
  }
  for (; i < n; i += kSize) {
    Low::Load(row + i, v);
    if (i + kSize > n) SetRest<Low>(n - i, kLowest, v);
    TakeGreater<kSize>(v, most);
  }
  TakeGreater<kSize>(most + kSize, most);
  if constexpr (kSize == 2 * kVector) {
    TakeGreater<kVector>(most + kVector, most);
  }
  return MaxOfLanes(VectorAt(most));
}

// The sum of n elements, of which `at`(i, v) gives those from i on, in the
// order of SumOf (sums.h).
template <typename Low, typename At>
inline float SumOfLow(int64_t n, const At& at) {
  constexpr int kSize = Low::kSize, kSums = kLanes / kSize;
  alignas(64) float sums[kLanes], v[kSize];
#pragma GCC unroll 1
  for (int j = 0; j < kLanes; ++j) sums[j] = 0.0f;
  const auto add = [&](int k) {
#pragma GCC unroll 1
    for (int j = 0; j < kSize; ++j) sums[k * kSize + j] += v[j];
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kSums; ++k) {
      at(i + k * kSize, v);
      add(k);
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kSums; ++k) {
    if (i >= n) break;
    at(i, v);
    if (i + kSize > n) SetRest<Low>(n - i, 0.0f, v);
    add(k);
    i += kSize;
  }
  return SumOfLanes(reinterpret_cast<const Vector*>(sums));
}

// Rows of fewer elements are short: all that is done with one of them is
// written out for its number of vectors. Some rows go through a step before the
// next one: a row's whole way is so long that few of them would be under way at
// once.
inline constexpr int64_t kLongRow = 64;

// run(std::integral_constant<int, n>()) for the vectors of a short row.
template <typename Low, int kMost = kLongRow / Low::kSize, typename Run>
inline void ForVectorsOf(int64_t length, const Run& run) {
  if constexpr (kMost > 1) {
    if (length <= (kMost - 1) * Low::kSize) {
      return ForVectorsOf<Low, kMost - 1>(length, run);
    }
  }
  run(std::integral_constant<int, kMost>());
}

// SumOfLow of a short row.
template <typename Low, int kVectors, typename At>
inline float SumOfShort(int64_t length, const At& at) {
  constexpr int kSize = Low::kSize, kSums = kLanes / kSize;
  alignas(64) float sums[kSums][kSize] = {}, v[kSize];
#pragma GCC unroll 8
  for (int k = 0; k < kVectors; ++k) {
    at(k * kSize, v);
    if (k == kVectors - 1) SetRest<Low>(length - k * kSize, 0.0f, v);
#pragma GCC unroll 1
    for (int j = 0; j < kSize; ++j) sums[k % kSums][j] += v[j];
  }
  return SumOfLanes(reinterpret_cast<const Vector*>(sums));
}

// Stores a row of which `at`(i, v) gives the elements from i on, and nothing
// behind it, unless a vector has more elements than it. The last vector is
// asked for first, within the row: it overlaps another, of which `to` may be
// the place.
template <typename Low, typename T, typename At>
inline void StoreLow(T* to, int64_t n, const At& at) {
  constexpr int kSize = Low::kSize;
  alignas(64) float v[kSize], tail[kSize];
  const int64_t last = n > kSize ? n - kSize : 0;
  at(last, tail);
  for (int64_t i = 0; i < last; i += kSize) {
    at(i, v);
    Low::Store(v, to + i);
  }
  Low::Store(tail, to + last);
}

// Stores a row's elements times a factor.
template <typename Low, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void StoreTimes(T* to, int64_t n,
                                                    const float* x,
                                                    float factor) {
  StoreLow<Low>(to, n, [=](int64_t i, float* v) {
    Low::Load(x + i, v);
#pragma GCC unroll 1
    for (int j = 0; j < Low::kSize; ++j) v[j] *= factor;
  });
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_LOW_ROWS_H_
