// GELU, exact and by tanh, and its gradient. f32 in, f32 out.
#ifndef HALFTONE_KERNELS_FUNCTORS_GELU_H_
#define HALFTONE_KERNELS_FUNCTORS_GELU_H_

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

// The standard normal distribution's function, erfc(-x / sqrt(2)) / 2, by
// Cephes' erf (|x| / sqrt(2) < 1) and erfc. Error: 1.1e-7; of the lower tail
// 5e-6 of its value.
HT_HOST_DEVICE inline float NormalCdf(float x) {
  const float a = Abs(x) * 0.707106781f;
  const float z = a * a;
  float p = 7.853861353e-5f;
  p = p * z - 8.010193625e-4f;
  p = p * z + 5.188327686e-3f;
  p = p * z - 2.685381193e-2f;
  p = p * z + 1.128358515e-1f;
  p = p * z - 3.761262582e-1f;
  p = p * z + 1.128379167f;
  const float near = 0.5f - 0.5f * (a * p);
  const float q = 1.0f / a;
  const float y = q * q;
  float m = 2.326819970e-2f;  // a < 2
  m = m * y - 1.387039388e-1f;
  m = m * y + 3.687424675e-1f;
  m = m * y - 5.824733027e-1f;
  m = m * y + 6.210004622e-1f;
  m = m * y - 4.944515323e-1f;
  m = m * y + 3.404879938e-1f;
  m = m * y - 2.741127028e-1f;
  m = m * y + 5.638259427e-1f;
  float r = -1.047766400e1f;
  r = r * y + 1.297719955e1f;
  r = r * y - 7.495518718f;
  r = r * y + 2.921019019f;
  r = r * y - 1.015265279f;
  r = r * y + 4.218463358e-1f;
  r = r * y - 2.820767440e-1f;
  r = r * y + 5.641895067e-1f;
  const float far = 0.5f * (Exp(-z) * (q * (a < 2.0f ? m : r)));
  const float tail = a < 1.0f ? near : far;
  return x < 0.0f ? tail : 1.0f - tail;
}

namespace gelu_internal {
// Beyond 16 all factors below are 0 or 1 in f32; a NaN stays.
HT_HOST_DEVICE inline float Within16(float x) {
  x = x > 16.0f ? 16.0f : x;
  return x < -16.0f ? -16.0f : x;
}
inline constexpr float kCube = 0.044715f;
inline constexpr float kRoot = 0.797884561f;  // sqrt(2 / pi)
}  // namespace gelu_internal

// x * NormalCdf(x), or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
// A NaN stays one; at -infinity it is 0 times infinity, a NaN, too.
struct GeluOp {
  bool tanh;
  HT_HOST_DEVICE float operator()(float x) const {
    const float c = gelu_internal::Within16(x);
    const float u =
        gelu_internal::kRoot * (c + gelu_internal::kCube * (c * c * c));
    const float approximate = 0.5f * (1.0f + Tanh(u));
    return x * (tanh ? approximate : NormalCdf(c));
  }
};

// (X, OutGrad) -> XGrad.
struct GeluGradOp {
  bool tanh;
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    const float c = gelu_internal::Within16(x);
    const float squared = c * c;
    const float t =
        Tanh(gelu_internal::kRoot * (c + gelu_internal::kCube * (squared * c)));
    const float slope =
        gelu_internal::kRoot * (1.0f + 3.0f * gelu_internal::kCube * squared);
    const float approximate =
        0.5f * (1.0f + t) + 0.5f * c * (1.0f - t * t) * slope;
    const float density = 0.398942280f * Exp(-0.5f * squared);
    const float exact = NormalCdf(c) + c * density;
    return grad * (tanh ? approximate : exact);
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_GELU_H_
