// GELU, exact and by tanh, and its gradient. f32 in, f32 out. Two structs each,
// not one with a flag: loops over a choice that is made at run time do not
// vectorise.
//
// Errors: at most 4.5 units in the last place, by tanh 2.9, also of subnormal
// results. Gradients: 3.6; by tanh 8, or 2e-7 beside the zero near -0.75.
#ifndef HALFTONE_KERNELS_FUNCTORS_GELU_H_
#define HALFTONE_KERNELS_FUNCTORS_GELU_H_

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {
namespace gelu_internal {

// |x|, at most `far`, where the lower tail has long been 0; of a NaN `far`. By
// integers: of these compilers make one instruction.
HT_HOST_DEVICE inline float Magnitude(float x, float far) {
  const uint32_t bits = Bits(x) & 0x7fffffffu, most = Bits(far);
  return FromBits(bits < most ? bits : most);
}
inline constexpr float kFar = 15.0f, kTanhFar = 11.0f;

// a * Phi(-a) with Phi the standard normal distribution's function, 0 <= a <=
// 15: e^(-a * a / 2) times p / q, minimax, error 2^-26.3. Both are sums of even
// and of odd powers, so that fewer roundings add up. p has the bell's factor.
HT_HOST_DEVICE inline float Tail(float a) {
  const float s = a * a;
  float p = Fma(kUnlift * 0.398946553f, s, kUnlift * 17.6715336f);
  p = Fma(p, s, kUnlift * 48.0286026f);
  const float odd_p = Fma(kUnlift * 3.92691898f, s, kUnlift * 42.1963158f);
  p = Fma(odd_p, a, p);
  float q = Fma(9.84391308f, s, 115.801506f);
  q = Fma(q, s, 96.0572052f);
  const float odd_q = Fma(s + 45.282135f, s, 161.035233f);
  q = Fma(odd_q, a, q);
  const SplitExp bell = ExpOfSquare(-0.5f, a);
  const float w = a * bell.power * p / q;
  return Fma(w, bell.rest, w);
}

// The same for results of 16 bits: error 2^-16.5, above 6, where f16 has long
// been 0, 2^-14.5.
HT_HOST_DEVICE inline float LowTail(float a) {
  float p = kUnlift * -7.95340675e-05f;
  p = Fma(p, a, kUnlift * 0.401695788f);
  p = Fma(p, a, kUnlift * 1.93169951f);
  p = Fma(p, a, kUnlift * 3.87425232f);
  float q = a + 4.93510485f;
  q = Fma(q, a, 10.0476704f);
  q = Fma(q, a, 7.74845123f);
  // a e^(-a * a / 2).
  const float bell = math_internal::LowPower(a, -0.72134752f * a, a,
                                             math_internal::kLiftedShift);
  return bell * p / q;
}

// Phi(-a) - a * phi(a), phi = Phi': the gradient at -a. With e^(a * a / 2) it
// is (zero - a) times a minimax polynomial of degree 9 (error 2^-28) in t, so
// that it is as accurate beside its zero.
HT_HOST_DEVICE inline float TailSlope(float a) {
  const float t = (a - 2.5f) / (a + 2.5f);
  float p = kUnlift * -1.22064557e-05f;
  p = Fma(p, t, kUnlift * -5.22421542e-05f);
  p = Fma(p, t, kUnlift * -7.83260293e-06f);
  p = Fma(p, t, kUnlift * 0.000365628657f);
  p = Fma(p, t, kUnlift * 0.000451696222f);
  p = Fma(p, t, kUnlift * -0.00272691413f);
  p = Fma(p, t, kUnlift * -0.00450647622f);
  p = Fma(p, t, kUnlift * 0.0447642133f);
  p = Fma(p, t, kUnlift * -0.12899442f);
  p = Fma(p, t, kUnlift * 0.489658058f);
  // The zero is 0.751791524693564.
  const float factor = (0.751791537f - a) - 1.21144495e-8f;
  const SplitExp bell = ExpOfSquare(-0.5f, a);
  const float w = factor * bell.power * p;
  return Fma(w, bell.rest, w);
}

// v = sqrt(8 / pi) * (x + 0.044715 x^3) and e^-|v|, 0 <= x: v to twice a
// float's bits, because its error is the exponential's relative one.
struct TanhParts {
  ScaledExp exp;
  float slope;  // dv / dx
};
HT_HOST_DEVICE inline TanhParts PartsOfTanh(float x) {
  constexpr float kOne = 1.59576917f, kOneRest = -4.53406803e-8f;
  constexpr float kCube = 7.13548139e-2f, kCubeRest = 2.3988324e-9f;
  const float square = x * x, square_rest = Fma(x, x, -square);
  // factor = sqrt(8 / pi) * (1 + 0.044715 x^2), in two parts.
  const float cube = kCube * square;
  const float sum = kOne + cube;
  const float part = sum - kOne;
  const float lost = (kOne - (sum - part)) + (cube - part);
  const float rest =
      lost + Fma(kCube, square_rest,
                 Fma(kCubeRest, square, Fma(kCube, square, -cube) + kOneRest));
  const float high = x * sum;
  TanhParts parts;
  parts.exp = ExpOfSum(-high, -Fma(x, rest, Fma(x, sum, -high)));
  parts.slope = 3.0f * sum - 2.0f * kOne + 3.0f * rest - 2.0f * kOneRest;
  return parts;
}

}  // namespace gelu_internal

// x * Phi(x). A NaN stays one; at -infinity it is 0 times infinity, a NaN, too.
struct GeluOp {
  HT_HOST_DEVICE float operator()(float x) const {
    const float tail =
        gelu_internal::Tail(gelu_internal::Magnitude(x, gelu_internal::kFar));
    return (x > 0.0f ? x : x - x) - tail;
  }
  // For results of 16 bits.
  struct Low {
    HT_HOST_DEVICE float operator()(float x) const {
      const float tail = gelu_internal::LowTail(
          gelu_internal::Magnitude(x, gelu_internal::kFar));
      return (x > 0.0f ? x : x - x) - tail;
    }
  };
};

// (X, OutGrad) -> XGrad.
struct GeluGradOp {
  static constexpr bool kIsLong = true;
  HT_HOST_DEVICE float Part(float x) const {
    const float tail = gelu_internal::TailSlope(
        gelu_internal::Magnitude(x, gelu_internal::kFar));
    const float slope = x > 0.0f ? 1.0f - tail : tail;
    return x == x ? slope : x;
  }
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    return grad * Part(x);
  }
};

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), which is x / (1 +
// e^-v). NaNs as above.
struct TanhGeluOp {
  static constexpr bool kIsLong = true;
  HT_HOST_DEVICE float operator()(float x) const {
    const float a = gelu_internal::Magnitude(x, gelu_internal::kTanhFar);
    const ScaledExp exp = gelu_internal::PartsOfTanh(a).exp;
    const float sum = 1.0f + Scaled(exp.value, exp);
    const float tail = Scaled(a * exp.value / sum, exp);
    return (x > 0.0f ? x : x - x) - tail;
  }
};

struct TanhGeluGradOp {
  static constexpr bool kIsLong = true;
  HT_HOST_DEVICE float Part(float x) const {
    const float a = gelu_internal::Magnitude(x, gelu_internal::kTanhFar);
    const gelu_internal::TanhParts parts = gelu_internal::PartsOfTanh(a);
    const ScaledExp& exp = parts.exp;
    const float upper = 1.0f / (1.0f + Scaled(exp.value, exp));
    const float factor = upper * (1.0f - a * upper * parts.slope);
    const float tail = Scaled(factor * exp.value, exp);
    const float slope = x > 0.0f ? 1.0f - tail : tail;
    return x == x ? slope : x;
  }
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    return grad * Part(x);
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_GELU_H_
