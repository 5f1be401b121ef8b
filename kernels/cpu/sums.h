// Sums in one fixed order, whatever the instruction set and the number of
// threads: 32 lanes, then a tree. For bodies of ForIsa (isa.h).
#ifndef HALFTONE_KERNELS_CPU_SUMS_H_
#define HALFTONE_KERNELS_CPU_SUMS_H_

#include <cstdint>

#include "absl/base/attributes.h"
#include "kernels/cpu/lanes.h"

namespace halftone {
namespace kernels {

inline constexpr int kLanes = 32;

// f(0) + ... + f(n - 1): f(i) is added in lane i % 32.
template <typename F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float SumOf(int64_t n, const F& f) {
  alignas(4 * kVector) float lanes[kLanes];
  Vector* sums = reinterpret_cast<Vector*>(lanes);
#pragma GCC unroll 4
  for (int k = 0; k < kLanes / kVector; ++k) sums[k] = Vector{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lanes[j] += f(i + j);
  }
  // All lanes, so that what is left is loaded under a mask.
  const int rest = static_cast<int>(n - i);
  if (rest > 0) {
    for (int j = 0; j < kLanes; ++j) lanes[j] += j < rest ? f(i + j) : 0.0f;
  }
  return SumOfLanes(sums);
}

// SumOf of f and of g in one pass.
struct TwoSums {
  float first, second;
};
template <typename F, typename G>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline TwoSums SumsOf(int64_t n, const F& f,
                                                   const G& g) {
  alignas(4 * kVector) float lanes[2 * kLanes];
  Vector* sums = reinterpret_cast<Vector*>(lanes);
#pragma GCC unroll 8
  for (int k = 0; k < 2 * kLanes / kVector; ++k) sums[k] = Vector{};
  float* more = lanes + kLanes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      lanes[j] += f(i + j);
      more[j] += g(i + j);
    }
  }
  const int rest = static_cast<int>(n - i);
  if (rest > 0) {
    for (int j = 0; j < kLanes; ++j) {
      lanes[j] += j < rest ? f(i + j) : 0.0f;
      more[j] += j < rest ? g(i + j) : 0.0f;
    }
  }
  return {SumOfLanes(sums), SumOfLanes(sums + kLanes / kVector)};
}

// The largest of x[0, n), NaNs left out; -infinity if there is none.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float MaxOf(const float* x, int64_t n) {
  const float lowest = -__builtin_inff();
  float lanes[kLanes];
  for (int j = 0; j < kLanes; ++j) lanes[j] = lowest;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    }
  }
  const int rest = static_cast<int>(n - i);
  if (rest > 0) {
    for (int j = 0; j < kLanes; ++j) {
      const float value = j < rest ? x[i + j] : lowest;
      lanes[j] = value > lanes[j] ? value : lanes[j];
    }
  }
  for (int width = kLanes / 2; width >= 1; width /= 2) {
    for (int j = 0; j < width; ++j) {
      lanes[j] = lanes[j + width] > lanes[j] ? lanes[j + width] : lanes[j];
    }
  }
  return lanes[0];
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_SUMS_H_
