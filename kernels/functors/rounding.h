// To whole numbers. Exact; a zero keeps its sign, infinities and NaNs stay.
#ifndef HALFTONE_KERNELS_FUNCTORS_ROUNDING_H_
#define HALFTONE_KERNELS_FUNCTORS_ROUNDING_H_

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {
namespace rounding_internal {

HT_HOST_DEVICE inline float WithSignOf(float magnitude, float x) {
  return FromBits(Bits(magnitude) | (Bits(x) & 0x80000000u));
}

}  // namespace rounding_internal

// Halves to the even neighbour. (Adding 2^23 rounds; from there on all floats
// are whole.)
HT_HOST_DEVICE inline float RoundEven(float x) {
  const float a = Abs(x);
  const float rounded = (a + 8388608.0f) - 8388608.0f;
  return a < 8388608.0f ? rounding_internal::WithSignOf(rounded, x) : x;
}

struct RoundEvenOp {
  HT_HOST_DEVICE float operator()(float x) const { return RoundEven(x); }
};
// Halves away from zero. What is added is the float below 0.5: with 0.5 itself
// that float would become 1.
struct RoundOp {
  HT_HOST_DEVICE float operator()(float x) const {
    const float away = truncf(Abs(x) + 0.49999997f);
    return rounding_internal::WithSignOf(away, x);
  }
};
// C's functions are one instruction where there is one.
struct FloorOp {
  HT_HOST_DEVICE float operator()(float x) const { return floorf(x); }
};
struct CeilOp {
  HT_HOST_DEVICE float operator()(float x) const { return ceilf(x); }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_ROUNDING_H_
