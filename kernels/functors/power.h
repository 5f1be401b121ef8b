// Powers. Zeros, infinities, NaNs and negative bases as C's pow.
#ifndef HALFTONE_KERNELS_FUNCTORS_POWER_H_
#define HALFTONE_KERNELS_FUNCTORS_POWER_H_

#include <cstring>

#include "kernels/functors/math.h"
#include "kernels/functors/rounding.h"

namespace halftone {
namespace functors {
namespace power_internal {

// x^y for positive, finite x. Near: where IsNear holds, with the same bits.

// Rounded once to f32: errors below 0.51 units in the last place.
struct InDouble {
  // Minimax in s = (m - 1) / (m + 1), error 2^-43.
  HT_HOST_DEVICE static double Log2(const math_internal::Parts& x) {
    const double r = x.m - 1.0f;  // exact
    const double s = r / (r + 2.0);
    const double z = s * s, square = z * z;
    double even = Fma(0.31990515271507441, square, 0.57707794220083553);
    even = Fma(even, square, 2.8853900817778504);
    double odd = Fma(0.28290729369982448, square, 0.41220926709601341);
    odd = Fma(odd, square, 0.96179669411395174);
    return Fma(s, Fma(odd, z, even), static_cast<double>(x.e));
  }
  // 2^(y log), minimax, error 2^-34.5.
  HT_HOST_DEVICE static float Exp2(double y, double log) {
    // 1.5 * 2^52 rounds; the low bits are the exponent of 2^n.
    constexpr double kShift = 6755399441055744.0 + 1023.0;
    const double shifted = Fma(y, log, kShift);
    const double f = Fma(y, log, kShift - shifted);
    const double square = f * f;
    double even = Fma(1.546929118668644e-4, square, 9.6180272535176806e-3);
    even = Fma(even, square, 2.402265119815887e-1);
    even = Fma(even, square, 0.99999999996168159);
    double odd = Fma(1.5201922248720531e-5, square, 1.3333922561280113e-3);
    odd = Fma(odd, square, 5.5504103534496733e-2);
    odd = Fma(odd, square, 6.9314718072844704e-1);
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits <<= 52;
    double scale;
    memcpy(&scale, &bits, sizeof(scale));
    return static_cast<float>(Fma(odd, f, even) * scale);
  }
  HT_HOST_DEVICE static float Power(float x, float y) {
    const double log = Log2(math_internal::PartsOf(x)), t = y * log;
    const float low = t < -200.0 ? 0.0f : Exp2(y, log);
    return t > 200.0 ? Infinity() : low;
  }
  HT_HOST_DEVICE static float Near(float x, float y) {
    return Exp2(y, Log2(math_internal::PartsOfNormal(x)));
  }
};

// For results of 16 bits: of operands of 16 bits the error is 2^-22 times the
// exponent of the result, at least 2^-22.
struct InFloat {
  // y log2(x), and as n + r: n in the low bits, 2^r - 1.
  struct Exponent {
    float sum, shifted, rest;
  };
  HT_HOST_DEVICE static Exponent ExponentOf(const math_internal::Parts& x,
                                            float y) {
    constexpr float kShift = math_internal::kPowerShift;
    const float s = x.m - 1.0f;
    const float square = s * s;
    float even = Fma(0.234042376f, square, 0.287098702f);
    even = Fma(even, square, 0.480923242f);
    even = Fma(even, square, 1.44269496f);
    float odd = Fma(-0.145811609f, square, -0.248876896f);
    odd = Fma(odd, square, -0.360239637f);
    odd = Fma(odd, square, -0.721352788f);
    const float log = Fma(odd, s, even) * s;
    const float whole = y * x.e;  // exact, of 16 bits
    Exponent made;
    made.sum = Fma(y, log, whole);
    made.shifted = made.sum + kShift;
    const float r = Fma(y, log, whole - (made.shifted - kShift));
    float q = 1.32647275e-3f;
    q = Fma(q, r, 9.67151265e-3f);
    q = Fma(q, r, 5.55073374e-2f);
    q = Fma(q, r, 0.240222421f);
    q = Fma(q, r, 0.693146978f);
    made.rest = q * r;
    return made;
  }
  HT_HOST_DEVICE static float Power(float x, float y) {
    constexpr float kMost = 1e30f;  // no product is infinite
    y = y > kMost ? kMost : y;
    y = y < -kMost ? -kMost : y;
    const Exponent exponent = ExponentOf(math_internal::PartsOf(x), y);
    const math_internal::Power power =
        math_internal::PowerOf(exponent.shifted - 127.0f);
    const float inside = (exponent.rest + 1.0f) * power.high * power.low;
    const float low = exponent.sum < -151.0f ? 0.0f : inside;
    return exponent.sum > 129.0f ? Infinity() : low;
  }
  HT_HOST_DEVICE static float Near(float x, float y) {
    const Exponent exponent = ExponentOf(math_internal::PartsOfNormal(x), y);
    const float power = math_internal::PowerIn(exponent.shifted);
    return Fma(power, exponent.rest, power);
  }
};

// Whether x is positive and normal and x^y is so, too, by far. The bits are a
// logarithm, too, within a factor of 1.45. (One condition: with two the loop
// over it becomes no vectors.)
HT_HOST_DEVICE inline bool IsNear(float x, float y) {
  constexpr float kUnit = 8388608.0f;  // what doubles x
  const float log =
      static_cast<float>(static_cast<int32_t>(Bits(x) - 0x3f800000u));
  return (Abs(log) <= 126.0f * kUnit) & (Abs(y * log) <= 86.0f * kUnit);
}

template <typename Arithmetic>
HT_HOST_DEVICE inline float Pow(float x, float y) {
  const float magnitude = Abs(x);
  float result = Arithmetic::Power(magnitude, y);
  const bool zero = magnitude == 0.0f, infinite = magnitude == Infinity();
  const float edge = zero == (y > 0.0f) ? 0.0f : Infinity();
  result = zero || infinite ? edge : result;
  result = magnitude == magnitude ? result : x;
  // 1 to any power is 1, anything to the power of 0 too.
  result = magnitude == 1.0f || y == 0.0f ? 1.0f : result;
  const bool whole = RoundEven(y) == y;
  const bool odd = whole && RoundEven(0.5f * y) != 0.5f * y;
  result = odd && (Bits(x) >> 31) != 0 ? -result : result;
  const bool undefined = x < 0.0f && !whole && !infinite;
  const bool y_is_nan = y != y && x != 1.0f;
  return undefined || y_is_nan ? QuietNaN() : result;
}

}  // namespace power_internal

HT_HOST_DEVICE inline float Pow(float x, float y) {
  return power_internal::Pow<power_internal::InDouble>(x, y);
}

// kInDouble: loops over few elements become no vectors.

// x^y and its slopes, which are 0 where PyTorch's are though the formula gives
// none: along x at y = 0, along y at x = 0.
struct PowerOp {
  static constexpr bool kInDouble = true;
  HT_HOST_DEVICE static bool IsNear(float x, float y) {
    return power_internal::IsNear(x, y);
  }
  HT_HOST_DEVICE static float Near(float x, float y) {
    return power_internal::InDouble::Near(x, y);
  }
  HT_HOST_DEVICE float operator()(float x, float y) const { return Pow(x, y); }
  // For results of 16 bits.
  struct Low {
    HT_HOST_DEVICE static bool IsNear(float x, float y) {
      return power_internal::IsNear(x, y);
    }
    HT_HOST_DEVICE static float Near(float x, float y) {
      return power_internal::InFloat::Near(x, y);
    }
    HT_HOST_DEVICE float operator()(float x, float y) const {
      return power_internal::Pow<power_internal::InFloat>(x, y);
    }
  };
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
  HT_HOST_DEVICE bool IsNear(float x) const {
    return power_internal::IsNear(x, factor);
  }
  HT_HOST_DEVICE float Near(float x) const {
    return power_internal::InDouble::Near(x, factor);
  }
  HT_HOST_DEVICE float operator()(float x) const { return Pow(x, factor); }
};
struct CubeOp {
  HT_HOST_DEVICE float operator()(float x) const { return x * x * x; }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_POWER_H_
