// A register's worth of floats, for code that is compiled for each instruction
// set (isa.h). Functions take pointers to
// them, as vectors of one set are no arguments in code for another.
#ifndef HALFTONE_KERNELS_CPU_WIDE_VECTOR_H_
#define HALFTONE_KERNELS_CPU_WIDE_VECTOR_H_

#include "absl/base/attributes.h"
#include "kernels/cpu/isa.h"

namespace halftone {
namespace kernels {

namespace wide_vector_internal {
template <int kLanes>
struct OfLanes;
template <>
struct OfLanes<4> {
  using type = float __attribute__((vector_size(16), aligned(4), may_alias));
};
template <>
struct OfLanes<8> {
  using type = float __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct OfLanes<16> {
  using type = float __attribute__((vector_size(64), aligned(4), may_alias));
};
}  // namespace wide_vector_internal

template <int kLanes>
using WideVector = typename wide_vector_internal::OfLanes<kLanes>::type;

// Vectors that some cases change and others do not: taken from an array behind
// each case, given to one in the next. An array that cases share would lie in
// memory from one to the next.
template <int kSize, int kVectors>
class HeldVectors {
 public:
  using Lanes = float[kVectors][kSize];
  void Take(const Lanes& x) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      held_[v] = *reinterpret_cast<const Vector*>(x[v]);
    }
  }
  void Give(Lanes& x) const {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<Vector*>(x[v]) = held_[v];
    }
  }

 private:
  using Vector = WideVector<kSize>;
  Vector held_[kVectors];
};

// sum += x * y; `kFused`: rounded once, as AVX2 and AVX-512 can. Their
// instruction is written out: the compiler finds it only if it may join
// statements to vectors (-ftree-slp-vectorize), and not always then.
template <bool kFused, typename Vector>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AddFloatProduct(const Vector& x,
                                                         const Vector& y,
                                                         Vector* sum) {
#ifdef HT_ISA_X86
  if constexpr (kFused) {
    asm("vfmadd231ps %1, %2, %0" : "+v"(*sum) : "v"(x), "v"(y));
    return;
  }
#endif
  *sum += x * y;
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_WIDE_VECTOR_H_
