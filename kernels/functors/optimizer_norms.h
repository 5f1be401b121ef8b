// Parameter updates whose steps follow the norms of whole parameters, in two
// passes. As optimizer.h has them: f32 throughout, formulas in
// graph/ops/optimizer.cc.
//
// Of each element First(parameter, gradient, states) makes the new states and
// gives what, beside the parameter, the norm is taken of; Ratio makes one
// factor of both norms; Step(parameter, gradient, states, ratio) reads the
// states that First made (kFirstStores), or makes them. Nothing is kept
// between the passes but what is stored anyway.
#ifndef HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_NORMS_H_
#define HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_NORMS_H_

#include <cmath>
#include <cstdint>

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

// A norm of a sum of squares that was made in double.
HT_HOST_DEVICE inline float NormOf(double squares) {
  return static_cast<float>(sqrt(squares));
}

struct LarsStep {
  static constexpr int kStates = 1;
  static constexpr bool kFirstStores = false;
  float learning_rate, mu, lars_coeff, weight_decay, epsilon;
  bool trust_ratio;

  HT_HOST_DEVICE float First(float, float g, float*) const { return g; }
  HT_HOST_DEVICE float Ratio(float p_norm, float g_norm) const {
    if (!trust_ratio || weight_decay == 0.0f) return 1.0f;
    if (!(p_norm > 0.0f && g_norm > 0.0f)) return 1.0f;
    return lars_coeff * p_norm / (g_norm + weight_decay * p_norm + epsilon);
  }
  HT_HOST_DEVICE void Step(float& p, float g, float* s, float ratio) const {
    const float v = s[0] =
        mu * s[0] + learning_rate * ratio * (g + weight_decay * p);
    p = p - v;
  }
};

struct LarsRule {
  using Method = LarsStep;
  float mu, lars_coeff, weight_decay, epsilon;
  bool trust_ratio;
  HT_HOST_DEVICE Method At(float rate, int64_t) const {
    return {rate, mu, lars_coeff, weight_decay, epsilon, trust_ratio};
  }
};

struct LambStep {
  static constexpr int kStates = 2;
  static constexpr bool kFirstStores = true;
  float learning_rate, weight_decay;
  float beta1, one_minus_beta1, beta2, one_minus_beta2, epsilon;
  float correction1, correction2;  // 1 - beta^t
  bool trust_ratio;

  HT_HOST_DEVICE float Direction(float p, const float* s) const {
    const float m_hat = s[0] / correction1;
    const float v_hat = s[1] / correction2;
    return m_hat / (Sqrt(v_hat) + epsilon) + weight_decay * p;
  }
  HT_HOST_DEVICE float First(float p, float g, float* s) const {
    s[0] = beta1 * s[0] + one_minus_beta1 * g;
    s[1] = beta2 * s[1] + one_minus_beta2 * (g * g);
    return Direction(p, s);
  }
  HT_HOST_DEVICE float Ratio(float p_norm, float r_norm) const {
    if (!trust_ratio || !(p_norm > 0.0f && r_norm > 0.0f)) return 1.0f;
    return p_norm / r_norm;
  }
  HT_HOST_DEVICE void Step(float& p, float, float* s, float ratio) const {
    p = p - learning_rate * ratio * Direction(p, s);
  }
};

struct LambRule {
  using Method = LambStep;
  double beta1, beta2;
  float weight_decay, epsilon;
  bool trust_ratio;
  HT_HOST_DEVICE Method At(float rate, int64_t applied) const {
    const double t = static_cast<double>(applied) + 1;
    return {rate,
            weight_decay,
            static_cast<float>(beta1),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2),
            epsilon,
            static_cast<float>(1 - pow(beta1, t)),
            static_cast<float>(1 - pow(beta2, t)),
            trust_ratio};
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_NORMS_H_
