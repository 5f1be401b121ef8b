// Powers, in f64 and rounded once: errors below 0.51 units in the last place of
// the f32 result. Zeros, infinities, NaNs and negative bases as C's pow.
#ifndef HALFTONE_KERNELS_FUNCTORS_POWER_H_
#define HALFTONE_KERNELS_FUNCTORS_POWER_H_

#include <cstring>

#include "kernels/functors/math.h"
#include "kernels/functors/rounding.h"

namespace halftone {
namespace functors {
namespace power_internal {

// log2(x) for x >= 0: minimax in s = (m - 1) / (m + 1), error 2^-43.
HT_HOST_DEVICE inline double Log2(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const uint32_t bits = Bits(subnormal ? x * 8388608.0f : x);
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)).
  const uint32_t offset = bits - 0x3f3504f3u;
  const int32_t exponent = static_cast<int32_t>(offset) >> 23;
  const double m = FromBits((offset & 0x7fffffu) + 0x3f3504f3u);
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 0.28290729369982448;
  p = p * z + 0.31990515271507441;
  p = p * z + 0.41220926709601341;
  p = p * z + 0.57707794220083553;
  p = p * z + 0.96179669411395174;
  p = p * z + 2.8853900817778504;
  const double e = exponent - (subnormal ? 23 : 0);
  const double result = e + s * p;
  const float edge = x == 0.0f ? -Infinity() : x;  // or infinite, or a NaN
  return x == 0.0f || !IsFinite(x) ? edge : result;
}

// 2^t: minimax, error 2^-46.
HT_HOST_DEVICE inline float Exp2(double t) {
  t = t > 200.0 ? 200.0 : t;  // a NaN stays
  t = t < -200.0 ? -200.0 : t;
  const double shifted = t + 6755399441055744.0;  // 1.5 * 2^52: rounds
  const double f = t - (shifted - 6755399441055744.0);
  double p = 1.0209155141195128e-7;
  p = p * f + 1.3259651171296785e-6;
  p = p * f + 1.5252654653370739e-5;
  p = p * f + 1.5403433719516328e-4;
  p = p * f + 1.333355823554451e-3;
  p = p * f + 9.6181291939942976e-3;
  p = p * f + 5.550410866439788e-2;
  p = p * f + 2.4022650695639894e-1;
  p = p * f + 6.9314718055995195e-1;
  p = p * f + 1.0000000000000135;
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 1023) << 52;
  double scale;
  memcpy(&scale, &bits, sizeof(scale));
  return static_cast<float>(p * scale);
}

}  // namespace power_internal

HT_HOST_DEVICE inline float Pow(float x, float y) {
  const float magnitude = Abs(x);
  const double log = y * power_internal::Log2(magnitude);
  // 1 to any power is 1, anything to the power of 0 too.
  const bool one = magnitude == 1.0f || y == 0.0f;
  float result = power_internal::Exp2(one ? 0.0 : log);
  const bool whole = RoundEven(y) == y;
  const bool odd = whole && RoundEven(0.5f * y) != 0.5f * y;
  result = odd && (Bits(x) >> 31) != 0 ? -result : result;
  const bool undefined = x < 0.0f && !whole && magnitude != Infinity();
  const bool y_is_nan = y != y && x != 1.0f;
  return undefined || y_is_nan ? QuietNaN() : result;
}

// kInDouble: loops over few elements become no vectors.

// x^y and its slopes, which are 0 where PyTorch's are though the formula gives
// none: along x at y = 0, along y at x = 0.
struct PowerOp {
  static constexpr bool kInDouble = true;
  HT_HOST_DEVICE float operator()(float x, float y) const { return Pow(x, y); }
};
struct PowerByXOp {
  static constexpr bool kInDouble = true;
  HT_HOST_DEVICE float operator()(float x, float y) const {
    const float slope = y * Pow(x, y - 1.0f);
    return y == 0.0f ? 0.0f : slope;
  }
};
struct PowerByYOp {
  static constexpr bool kInDouble = true;
  HT_HOST_DEVICE float operator()(float x, float y) const {
    const float slope = Pow(x, y) * Log(x);
    return x == 0.0f && y >= 0.0f ? 0.0f : slope;
  }
};

// x to a constant power.
struct PowOp {
  static constexpr bool kIsLong = true;
  static constexpr bool kInDouble = true;
  float factor;
  HT_HOST_DEVICE float operator()(float x) const { return Pow(x, factor); }
};
struct CubeOp {
  HT_HOST_DEVICE float operator()(float x) const { return x * x * x; }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_POWER_H_
