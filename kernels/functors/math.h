// Elementary functions made of f32 operations in a fixed order: the same bits
// on every instruction set and device, and loops over them vectorise (no
// calls, no branches). Approximations: Cephes (S. Moshier), single precision,
// and minimax polynomials of our own. Errors in units in the last place: Exp
// 1, Log 0.8, Tanh 1.3, Sigmoid 2.5, Expm1 1.4, Log1p 2.
//
// Functors with kIsLong take more than some 25 instructions for a vector: for
// 16 bits a look-up among their results is faster. Of two operands a part that
// hangs on one is looked up: f(x, grad) is grad * Part(x), or f(x, y) is
// With(Part(y), x, y). F::Low is a shorter form of F, of the same settings, for
// results of 16 bits.
#ifndef HALFTONE_KERNELS_FUNCTORS_MATH_H_
#define HALFTONE_KERNELS_FUNCTORS_MATH_H_

#include <cmath>
#include <cstdint>

#include "graph/base/half.h"

namespace halftone {
namespace functors {

using half_internal::Bits;
using half_internal::FromBits;

HT_HOST_DEVICE inline bool IsFinite(float x) {
  return (Bits(x) & 0x7f800000u) != 0x7f800000u;
}
HT_HOST_DEVICE inline float Abs(float x) {
  return FromBits(Bits(x) & 0x7fffffffu);
}
HT_HOST_DEVICE inline float Infinity() { return FromBits(0x7f800000u); }
HT_HOST_DEVICE inline float QuietNaN() { return FromBits(0x7fc00000u); }
// A NaN of either stays; y where they are equal. Two selections each: the first
// is one instruction.
HT_HOST_DEVICE inline float Greater(float x, float y) {
  const float greater = x > y ? x : y;
  return x != x ? x : greater;
}
HT_HOST_DEVICE inline float Lesser(float x, float y) {
  const float lesser = x < y ? x : y;
  return x != x ? x : lesser;
}
// Correctly rounded everywhere.
HT_HOST_DEVICE inline float Sqrt(float x) { return sqrtf(x); }
// a * b + c, rounded once, everywhere: one instruction on GPUs and on CPUs
// since 2013, a slow call on older ones.
HT_HOST_DEVICE inline float Fma(float a, float b, float c) {
  return fmaf(a, b, c);
}
HT_HOST_DEVICE inline double Fma(double a, double b, double c) {
  return fma(a, b, c);
}

// A number times 2^n where that may be too small for a factor: value * factor.
struct ScaledExp {
  float value, factor;
};
HT_HOST_DEVICE inline float Scaled(float value, const ScaledExp& scale) {
  return value * scale.factor;
}

inline constexpr float kUnlift = 5.42101086e-20f;  // 2^-64

namespace math_internal {
// x = n ln 2 + r: adding 1.5 * 2^23 rounds to an integer in the low bits. What
// is added besides is in these, too: with 127 they are the exponent of 2^n,
// with 64 more that of 2^(n + 64).
inline constexpr float kShift = 12582912.0f, kPowerShift = kShift + 127.0f,
                       kLiftedShift = kPowerShift + 64.0f;
HT_HOST_DEVICE inline float ShiftedPower(float x, float shift = kShift) {
  return Fma(x, 1.44269504f, shift);
}
HT_HOST_DEVICE inline float Rest(float x, float shifted, float shift = kShift) {
  const float n = shifted - shift;
  return Fma(n, 1.90465430e-9f, Fma(n, -0.693147182f, x));
}
// What the low bits are the exponent of. n from -126 to 127, -190 to 63.
HT_HOST_DEVICE inline float PowerIn(float shifted) {
  return FromBits(Bits(shifted) << 23);
}
// e^r - 1; the polynomial's relative error is 2^-28.
HT_HOST_DEVICE inline float Expm1OfRest(float r) {
  float p = 1.38146093e-3f;
  p = Fma(p, r, 8.36871099e-3f);
  p = Fma(p, r, 4.16683890e-2f);
  p = Fma(p, r, 0.166665211f);
  p = Fma(p, r, 0.49999994f);
  return Fma(p, r * r, r);
}
// 2^n in two factors, so that both ends of the range come out right.
struct Power {
  float high, low;
};
HT_HOST_DEVICE inline Power PowerOf(float shifted) {
  const int32_t exponent = static_cast<int32_t>(Bits(shifted) - 0x4b400000u);
  const int32_t first = exponent >> 1;
  const uint32_t high = static_cast<uint32_t>(first + 127) << 23;
  const uint32_t low = static_cast<uint32_t>(exponent - first + 127) << 23;
  return {FromBits(high), FromBits(low)};
}
// scale 2^(x y), for results of 16 bits: minimax, error 2^-18.5. The exponent
// is not rounded; what it may be, and by what the power is lifted, `shift`
// says.
HT_HOST_DEVICE inline float LowPower(float scale, float x, float y,
                                     float shift) {
  const float shifted = Fma(x, y, shift);
  const float r = Fma(x, y, shift - shifted);
  float p = 9.57010183e-3f;
  p = Fma(p, r, 5.59178603e-2f);
  p = Fma(p, r, 0.240247448f);
  p = Fma(p, r, 0.693121815f);
  p = Fma(p, r, 0.999999261f);
  return scale * PowerIn(shifted) * p;
}
// e^r * 2^(n + 64) and 2^-64, where kLiftedShift has made n.
HT_HOST_DEVICE inline ScaledExp LiftedExp(float r, float shifted) {
  const float power = PowerIn(shifted);
  return {Fma(power, Expm1OfRest(r), power), kUnlift};
}
}  // namespace math_internal

// e^x: 0 below -104, infinity above 88.73.
HT_HOST_DEVICE inline float Exp(float x) {
  x = x > 89.0f ? 89.0f : x;  // a NaN stays
  const bool none = x < -104.0f;
  x = none ? -104.0f : x;
  const float shifted = math_internal::ShiftedPower(x);
  const math_internal::Power power = math_internal::PowerOf(shifted);
  const float r = math_internal::Rest(x, shifted);
  const float p = math_internal::Expm1OfRest(r) + 1.0f;
  // Products that underflow are slow.
  return (none ? 0.0f : p) * power.high * power.low;
}

// The same bits for x of at most 40, in fewer steps.
HT_HOST_DEVICE inline float ExpUpTo40(float x) {
  const bool none = x < -104.0f;
  const float near = none ? -104.0f : x;
  constexpr float kShift = math_internal::kLiftedShift;
  const float shifted = math_internal::ShiftedPower(near, kShift);
  const ScaledExp exp = math_internal::LiftedExp(
      math_internal::Rest(near, shifted, kShift), shifted);
  return Scaled(none ? 0.0f : exp.value, exp);
}

// e^x for x in [-87, 88], where one factor does: the same bits. Of a NaN
// anything.
HT_HOST_DEVICE inline float NearExp(float x) {
  constexpr float kShift = math_internal::kPowerShift;
  const float shifted = math_internal::ShiftedPower(x, kShift);
  const float r = math_internal::Rest(x, shifted, kShift);
  const float power = math_internal::PowerIn(shifted);
  return Fma(power, math_internal::Expm1OfRest(r), power);
}

// e^x for x of at most 0: the same bits down to -87, 0 below. Of a NaN a NaN.
HT_HOST_DEVICE inline float ExpUpTo0(float x) {
  const float made = NearExp(x);
  return x < -87.0f ? 0.0f : made;
}

// Those of results of 16 bits, of which half a unit is 2^-12 and more: fewer
// steps, shorter chains of them.

// e^x, error 2^-17: as a square, so that one factor 2^n does at both ends of
// the range. What is outside is chosen last: the chain is shorter.
HT_HOST_DEVICE inline float LowExp(float x) {
  constexpr float kHalf = 0.72134752f;  // log2(e) / 2
  const float made =
      math_internal::LowPower(1.0f, x, kHalf, math_internal::kPowerShift);
  const float low = x < -104.0f ? 0.0f : made;
  const float root = x > 89.0f ? Infinity() : low;
  return root * root;
}

namespace math_internal {
// 2^n and 2^r - 1 of e^x = 2^n 2^r, x in [-87, 88]: minimax, error 2^-16 also
// where the latter is nearly r.
struct LowParts {
  float power, rest;
};
HT_HOST_DEVICE inline LowParts LowPartsOf(float x) {
  constexpr float kLog2e = 1.44269504f;
  const float shifted = Fma(x, kLog2e, kPowerShift);
  const float r = Fma(x, kLog2e, kPowerShift - shifted);
  float p = 9.61810561e-3f;
  p = Fma(p, r, 5.58372931e-2f);
  p = Fma(p, r, 0.240232516f);
  p = Fma(p, r, 0.69313686f);
  return {PowerIn(shifted), p * r};
}
}  // namespace math_internal

// e^x for x of at most 0: error 2^-17, and 2^-15 of 1 - e^x. 0 below -87; of a
// NaN a NaN.
HT_HOST_DEVICE inline float LowExpUpTo0(float x) {
  const math_internal::LowParts parts = math_internal::LowPartsOf(x);
  const float made = Fma(parts.power, parts.rest, parts.power);
  return x < -87.0f ? 0.0f : made;
}

// e^x - 1 for x of at most 0, also where that is nearly x: error 2^-15. Above
// anything.
HT_HOST_DEVICE inline float LowExpm1(float x) {
  const float near = x < -20.0f ? -20.0f : x;  // a NaN stays
  const math_internal::LowParts parts = math_internal::LowPartsOf(near);
  return Fma(parts.power, parts.rest, parts.power - 1.0f);
}

HT_HOST_DEVICE inline float LowSigmoid(float x) {
  return 1.0f / (1.0f + LowExp(-x));
}

// e^(x + low) for a low of less than 1, before its small factor: what else is
// multiplied by the value is not rounded twice where that makes a subnormal.
// x in [-130, 40]. Of a NaN anything.
HT_HOST_DEVICE inline ScaledExp ExpOfSum(float x, float low) {
  constexpr float kShift = math_internal::kLiftedShift;
  const float shifted = math_internal::ShiftedPower(x + low, kShift);
  return math_internal::LiftedExp(math_internal::Rest(x, shifted, kShift) + low,
                                  shifted);
}

// e^(scale * a * a), the square not rounded, as kUnlift * power * (1 + rest):
// other factors go to the power, and w * (1 + rest) is Fma(w, rest, w). `scale`
// is a power of two, of either sign; the exponent in [-130, 40]. Of a NaN
// anything.
struct SplitExp {
  float power, rest;
};
HT_HOST_DEVICE inline SplitExp ExpOfSquare(float scale, float a) {
  constexpr float kShift = math_internal::kLiftedShift;
  const float shifted = Fma(a * a, scale * 1.44269504f, kShift);
  const float n = shifted - kShift;
  // n times the first 15 bits of ln 2 is exact.
  const float high = Fma(scale * a, a, n * -0.693145752f);
  const float r = Fma(n, -1.42860677e-6f, high);
  return {math_internal::PowerIn(shifted), math_internal::Expm1OfRest(r)};
}

// e^x - 1 for x of at most 88, also where that is nearly x.
HT_HOST_DEVICE inline float Expm1(float x) {
  x = x < -104.0f ? -104.0f : x;  // a NaN stays
  const float shifted = math_internal::ShiftedPower(x);
  const float r = math_internal::Rest(x, shifted);
  const math_internal::Power factors = math_internal::PowerOf(shifted);
  const float power = factors.high * factors.low;
  return power * math_internal::Expm1OfRest(r) + (power - 1.0f);
}

namespace math_internal {
inline constexpr float kLeastNormal = 1.17549435e-38f;
// m 2^e with m in [sqrt(1/2), sqrt(2)), e whole.
struct Parts {
  float m, e;
};
// Of an x that is positive, finite and not subnormal.
HT_HOST_DEVICE inline Parts PartsOfNormal(float x) {
  const uint32_t offset = Bits(x) - 0x3f3504f3u;
  const int32_t exponent =
      static_cast<int32_t>(offset) >> 23;  // arithmetic shift
  return {FromBits((offset & 0x7fffffu) + 0x3f3504f3u),
          static_cast<float>(exponent)};
}
// Of a subnormal one, too; of any other anything.
HT_HOST_DEVICE inline Parts PartsOf(float x) {
  const bool subnormal = x < kLeastNormal;
  Parts parts = PartsOfNormal(subnormal ? x * 8388608.0f : x);
  parts.e -= subnormal ? 23.0f : 0.0f;
  return parts;
}
HT_HOST_DEVICE inline float LogOf(const Parts& x) {
  const float r = x.m - 1.0f, e = x.e;
  const float z = r * r;
  float p = 6.74662590e-2f;
  p = Fma(p, r, -0.116756327f);
  p = Fma(p, r, 0.11888162f);
  p = Fma(p, r, -0.124055937f);
  p = Fma(p, r, 0.142195523f);
  p = Fma(p, r, -0.166679949f);
  p = Fma(p, r, 0.200021192f);
  p = Fma(p, r, -0.250000089f);
  p = Fma(p, r, 0.333333135f);
  const float y = Fma(Fma(p, r, -0.5f), z, e * -2.12194440e-4f);
  return Fma(e, 0.693359375f, r + y);
}
}  // namespace math_internal

// Natural logarithm; -infinity at 0, NaN below.
HT_HOST_DEVICE inline float Log(float x) {
  float result = math_internal::LogOf(math_internal::PartsOf(x));
  result = x == Infinity() ? x : result;
  result = x == 0.0f ? -Infinity() : result;
  return x >= 0.0f ? result : QuietNaN();
}

// The same bits for an x that is positive, finite and not subnormal.
HT_HOST_DEVICE inline float NearLog(float x) {
  return math_internal::LogOf(math_internal::PartsOfNormal(x));
}

// Of results of 16 bits, ln x for x in [0, 1], error 2^-16, at least -100: the
// polynomial is minimax. Of others anything.
HT_HOST_DEVICE inline float LowLogOfShare(float x) {
  constexpr int kLifted = 24;  // subnormal numbers are none then
  const uint32_t bits = Bits(x * static_cast<float>(1 << kLifted));
  const uint32_t offset = bits - (0x3f3504f3u + (kLifted << 23));
  const float r = FromBits((offset & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  float p = -0.142920748f;
  p = Fma(p, r, 0.22055937f);
  p = Fma(p, r, -0.254032692f);
  p = Fma(p, r, 0.332580235f);
  p = Fma(p, r, -0.499902176f);
  p = Fma(p, r, 1.00000456f);
  const auto exponent = static_cast<float>(static_cast<int32_t>(offset) >> 23);
  const uint32_t log = Bits(Fma(exponent, 0.693147181f, p * r));
  const uint32_t least = Bits(-100.0f);
  return FromBits(log < least ? log : least);
}

// ln(1 + x) for x in [0, 1], also where that is nearly x. With s = x / (2 + x)
// it is 2 artanh(s): a minimax polynomial, error 2^-32.
HT_HOST_DEVICE inline float Log1p(float x) {
  const float s = x / (2.0f + x);
  const float z = s * s;
  float p = 0.243009344f;
  p = Fma(p, z, 0.214276582f);
  p = Fma(p, z, 0.286168844f);
  p = Fma(p, z, 0.39998877f);
  p = Fma(p, z, 0.666666746f);
  return Fma(s, z * p, s + s);
}

HT_HOST_DEVICE inline float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

HT_HOST_DEVICE inline float Tanh(float x) {
  const float z = x * x;
  float p = -5.70497848e-3f;
  p = Fma(p, z, 2.06390787e-2f);
  p = Fma(p, z, -5.37397116e-2f);
  p = Fma(p, z, 0.133314416f);
  p = Fma(p, z, -0.333332807f);
  const float near = Fma(p * z, x, x);
  const float magnitude = Abs(x);
  const float twice = 2.0f * (magnitude > 20.0f ? 20.0f : magnitude);
  const float tail = 1.0f - 2.0f / (NearExp(twice) + 1.0f);
  const float far = x < 0.0f ? -tail : tail;
  return magnitude >= 0.625f ? far : near;  // a NaN is near
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_MATH_H_
