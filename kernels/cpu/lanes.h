// Short rows as whole vectors. For bodies of ForIsa (isa.h): the compiler makes
// of a vector as many instructions as it takes. Loads and stores may go up to a
// vector beyond a row's end: the buffers of RowGroups (rows.h) allow that, and
// rows that follow are written later.
#ifndef HALFTONE_KERNELS_CPU_LANES_H_
#define HALFTONE_KERNELS_CPU_LANES_H_

#include <cstdint>
#include <type_traits>

#include "absl/base/attributes.h"
#include "kernels/cpu/wide_vector.h"

namespace halftone {
namespace kernels {

inline constexpr int kVector = 8;

// No wider: of wider vectors than an instruction set has, compilers compare and
// choose elements one by one.
using Vector =
    float __attribute__((vector_size(4 * kVector), aligned(4), may_alias));
using VectorMask = int32_t __attribute__((vector_size(4 * kVector)));

ABSL_ATTRIBUTE_ALWAYS_INLINE inline const Vector& VectorAt(const float* x) {
  return *reinterpret_cast<const Vector*>(x);
}
ABSL_ATTRIBUTE_ALWAYS_INLINE inline Vector& VectorAt(float* x) {
  return *reinterpret_cast<Vector*>(x);
}

// The first elements of x, as many as the vector has, those of 16 bits by `Low`
// (low_vector.h).
template <typename Low, typename T, typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ReadVector(const T* x, V* v) {
  if constexpr (std::is_same<T, float>::value) {
    using Stored = WideVector<sizeof(V) / sizeof(float)>;
    *v = *reinterpret_cast<const Stored*>(x);  // Load goes by halves
  } else {
    Low::Load(x, reinterpret_cast<float*>(v));
  }
}

// These four elements of a vector, twice.
#define HT_LANES(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__, __VA_ARGS__)

// The sum of four vectors' elements, as a tree.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float SumOfLanes(const Vector* sums) {
  Vector sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  sum += HT_LANES(sum, 4, 5, 6, 7);
  sum += HT_LANES(sum, 2, 3, 2, 3);
  return sum[0] + sum[1];
}

// The largest of a vector's elements.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float MaxOfLanes(const Vector& v) {
  const Vector upper = HT_LANES(v, 4, 5, 6, 7);
  Vector most = upper > v ? upper : v;
  const Vector other = HT_LANES(most, 2, 3, 2, 3);
  most = other > most ? other : most;
  return most[1] > most[0] ? most[1] : most[0];
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_LANES_H_
