// Short rows as whole vectors. For bodies of ForIsa (isa.h): the compiler makes
// of a vector as many instructions as it takes. Loads and stores may go up to a
// vector beyond a row's end: the buffers of RowGroups (rows.h) allow that, and
// rows that follow are written later.
#ifndef HALFTONE_KERNELS_CPU_LANES_H_
#define HALFTONE_KERNELS_CPU_LANES_H_

#include <cstdint>

#include "absl/base/attributes.h"

namespace halftone {
namespace kernels {

inline constexpr int kVector = 16;

using Vector =
    float __attribute__((vector_size(4 * kVector), aligned(4), may_alias));
using VectorMask = int32_t __attribute__((vector_size(4 * kVector)));

ABSL_ATTRIBUTE_ALWAYS_INLINE inline const Vector& VectorAt(const float* x) {
  return *reinterpret_cast<const Vector*>(x);
}
ABSL_ATTRIBUTE_ALWAYS_INLINE inline Vector& VectorAt(float* x) {
  return *reinterpret_cast<Vector*>(x);
}

// These eight elements of a vector, twice.
#define HT_LANES(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__, __VA_ARGS__)

// Sets the elements from `first` on to `value`.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void SetFrom(int64_t first, float value,
                                                 Vector* v) {
  const VectorMask lanes = {0, 1, 2,  3,  4,  5,  6,  7,
                            8, 9, 10, 11, 12, 13, 14, 15};
  const Vector other = value - Vector{};
  *v = lanes < static_cast<int32_t>(first) ? *v : other;
}

// The sum of x[0, n), in the order of SumOf.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float SumOfRow(const float* x, int64_t n) {
  Vector even = {}, odd = {};
  int64_t i = 0;
  for (; i + 2 * kVector <= n; i += 2 * kVector) {
    even += VectorAt(x + i);
    odd += VectorAt(x + i + kVector);
  }
  if (i + kVector <= n) {
    even += VectorAt(x + i);
    i += kVector;
    if (i < n) {
      Vector rest = VectorAt(x + i);
      SetFrom(n - i, 0.0f, &rest);
      odd += rest;
    }
  } else if (i < n) {
    Vector rest = VectorAt(x + i);
    SetFrom(n - i, 0.0f, &rest);
    even += rest;
  }
  Vector sum = even + odd;
  sum += HT_LANES(sum, 8, 9, 10, 11, 12, 13, 14, 15);
  sum += HT_LANES(sum, 4, 5, 6, 7, 4, 5, 6, 7);
  sum += HT_LANES(sum, 2, 3, 2, 3, 2, 3, 2, 3);
  return sum[0] + sum[1];
}

// The largest of x[0, n), NaNs left out.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float MaxOfRow(const float* x, int64_t n) {
  const Vector lowest = -__builtin_inff() - Vector{};
  Vector most = lowest;
  for (int64_t i = 0; i < n; i += kVector) {
    Vector v = VectorAt(x + i);
    if (i + kVector > n) SetFrom(n - i, -__builtin_inff(), &v);
    most = v > most ? v : most;
  }
  Vector other = HT_LANES(most, 8, 9, 10, 11, 12, 13, 14, 15);
  most = other > most ? other : most;
  other = HT_LANES(most, 4, 5, 6, 7, 4, 5, 6, 7);
  most = other > most ? other : most;
  other = HT_LANES(most, 2, 3, 2, 3, 2, 3, 2, 3);
  most = other > most ? other : most;
  return most[1] > most[0] ? most[1] : most[0];
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_LANES_H_
