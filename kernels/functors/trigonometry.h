// Sine and cosine of any f32, below 1.6 units in the last place; arctangent,
// below 2.2. f32 in, f32 out. Polynomials: Cephes (S. Moshier), single
// precision.
#ifndef HALFTONE_KERNELS_FUNCTORS_TRIGONOMETRY_H_
#define HALFTONE_KERNELS_FUNCTORS_TRIGONOMETRY_H_

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {
namespace trigonometry_internal {

// x = quarters * pi / 2 + angle, about half a quarter at most.
struct Turn {
  float angle;
  int32_t quarters;  // modulo 4
};

// |value| < 2^51.
HT_HOST_DEVICE inline double Nearest(double value) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52
  return (value + kShift) - kShift;
}

// Below this, what is left of x in NearTurn is below 1 in all steps.
inline constexpr float kNear = 524288.0f;

// x - n * pi / 2, with pi / 2 in three parts (W. Cody and W. Waite). The first
// difference is exact: a multiple of the last place of pi / 2, below 1. So the
// angle is rounded twice, also beside multiples of pi / 2.
HT_HOST_DEVICE inline Turn NearTurn(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  const float shifted = Fma(x, 0.636619772f, kShift);
  const float n = shifted - kShift;
  float angle = Fma(n, -1.57079637f, x);
  angle = Fma(n, 4.37113883e-8f, angle);
  angle = Fma(n, 1.71512451e-15f, angle);
  // The lowest bits are those of n.
  return {angle, static_cast<int32_t>(Bits(shifted))};
}

// x * 2 / pi modulo 4, 24 bits of 2 / pi at a time: the products are exact, and
// whatever is a multiple of 4 is dropped.
struct FarSum {
  double rest, quarters;

  HT_HOST_DEVICE void Add(double x, double bits) {
    double product = x * bits;
    const bool small = product < 0x1p51 && product > -0x1p51;
    product = small ? product - 4.0 * Nearest(0.25 * product) : 0.0;
    rest += product;
    const double whole = Nearest(rest);
    rest -= whole;
    quarters += whole;
  }
};

// For x up to 2^128, whose distance from a multiple of pi / 2 may be 2^-32, in
// 8 steps: 192 bits.
HT_HOST_DEVICE inline Turn FarTurn(float x) {
  FarSum sum = {0, 0};
  const double wide = x;
  sum.Add(wide, 0xa2f983p-24);
  sum.Add(wide, 0x6e4e44p-48);
  sum.Add(wide, 0x1529fcp-72);
  sum.Add(wide, 0x2757d1p-96);
  sum.Add(wide, 0xf534ddp-120);
  sum.Add(wide, 0xc0db62p-144);
  sum.Add(wide, 0x95993cp-168);
  sum.Add(wide, 0x439041p-192);
  return {static_cast<float>(sum.rest * 1.5707963267948966),
          static_cast<int32_t>(sum.quarters)};
}

// The sine of turn + quarters.
HT_HOST_DEVICE inline float SineOf(const Turn& turn, int32_t quarters) {
  const float r = turn.angle, z = r * r;
  float sine = -1.9515295891e-4f;
  sine = sine * z + 8.3321608736e-3f;
  sine = sine * z - 1.6666654611e-1f;
  sine = sine * (z * r) + r;
  float cosine = 2.443315711809948e-5f;
  cosine = cosine * z - 1.388731625493765e-3f;
  cosine = cosine * z + 4.166664568298827e-2f;
  cosine = cosine * (z * z) - 0.5f * z + 1.0f;
  const uint32_t quarter = static_cast<uint32_t>(turn.quarters + quarters);
  const float magnitude = (quarter & 1) != 0 ? cosine : sine;
  return FromBits(Bits(magnitude) ^ ((quarter & 2) << 30));
}

}  // namespace trigonometry_internal

// The functor with kQuarters = 0 or 1. kernels/cpu/map.h takes Near for blocks
// in which IsNear holds everywhere; the values are the same.
template <int kQuarters>
struct SineOp {
  static constexpr bool kIsLong = true;
  HT_HOST_DEVICE static bool IsNear(float x) {
    return Abs(x) < trigonometry_internal::kNear;
  }
  HT_HOST_DEVICE static float Near(float x) {
    using namespace trigonometry_internal;  // NOLINT(build/namespaces)
    const float sine = SineOf(NearTurn(x), kQuarters);
    return kQuarters == 0 && x == 0.0f ? x : sine;  // its sign stays
  }

  HT_HOST_DEVICE float operator()(float x) const {
    using namespace trigonometry_internal;  // NOLINT(build/namespaces)
    const bool near = IsNear(x);
    const float far = SineOf(FarTurn(x), kQuarters) + (x - x);  // or a NaN
    return near ? Near(near ? x : 0.0f) : far;
  }
};
using SinOp = SineOp<0>;
using CosOp = SineOp<1>;

// By the tangent of what x's angle is above 0, pi / 4 or pi / 2: within
// tan(pi / 8) of 0.
struct AtanOp {
  static constexpr bool kIsLong = true;
  HT_HOST_DEVICE float operator()(float x) const {
    const float a = Abs(x);
    const bool middle = a > 0.414213562f, far = a > 2.41421356f;
    const float over = far ? -1.0f : middle ? a - 1.0f : a;
    const float under = far ? a : middle ? a + 1.0f : 1.0f;
    const float r = over / under, z = r * r;
    float p = 8.05374449538e-2f;
    p = p * z - 1.38776856032e-1f;
    p = p * z + 1.99777106478e-1f;
    p = p * z - 3.33329491539e-1f;
    const float eighths = far ? 2.0f : middle ? 1.0f : 0.0f;  // of a turn
    const float low = eighths * -2.18556941e-8f;  // pi / 4 is that much less
    const float angle = eighths * 0.785398185f + (low + (p * z * r + r));
    return FromBits(Bits(angle) | (Bits(x) & 0x80000000u));
  }
};
struct AtanGradOp {
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    return grad / (x * x + 1.0f);
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_TRIGONOMETRY_H_
