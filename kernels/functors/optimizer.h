// Parameter updates of one element. f32 throughout.
// Formulas: the docs of graph/ops/optimizer.cc.
#ifndef HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_H_
#define HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_H_

#include <cmath>
#include <cstdint>

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

// What turns a stored gradient into the one that updates use. Each factor is
// rounded apart, so that ops of their own (unscale, clip_by_factor) give the
// same bits.
struct GradientTransform {
  float inv_scale = 1.0f;
  float clip_factor = 1.0f;
  float limit = 0.0f;  // infinity: no clamp

  // Whether each gradient stays as it is.
  bool KeepsAll() const {
    return inv_scale == 1.0f && clip_factor == 1.0f && std::isinf(limit);
  }
  HT_HOST_DEVICE float operator()(float g) const {
    g = g * inv_scale * clip_factor;
    g = g > limit ? limit : g;
    return g < -limit ? -limit : g;
  }
};

// Each method: Step(parameter, gradient, first state, second state) updates
// in place; kStates of the states are used.
struct SgdStep {
  static constexpr int kStates = 0;
  float learning_rate, weight_decay;

  HT_HOST_DEVICE void Step(float& p, float g, float&, float&) const {
    g = weight_decay != 0.0f ? g + weight_decay * p : g;
    p = p - learning_rate * g;
  }
};

struct MomentumStep {
  static constexpr int kStates = 1;
  float learning_rate, weight_decay, mu;
  bool nesterov;

  HT_HOST_DEVICE void Step(float& p, float g, float& v, float&) const {
    g = weight_decay != 0.0f ? g + weight_decay * p : g;
    v = mu * v + g;
    p = p - learning_rate * (nesterov ? g + mu * v : v);
  }
};

// adam and adamw: they differ in where the decay goes.
struct AdamStep {
  static constexpr int kStates = 2;
  float learning_rate;
  float l2;      // adam: added to the gradient
  float shrink;  // adamw: 1 - learning_rate * weight_decay; adam: 1
  float beta1, one_minus_beta1, beta2, one_minus_beta2, epsilon;
  float correction1, correction2;  // 1 - beta^t

  HT_HOST_DEVICE void Step(float& p, float g, float& m, float& v) const {
    g = l2 != 0.0f ? g + l2 * p : g;
    p = p * shrink;
    m = beta1 * m + one_minus_beta1 * g;
    v = beta2 * v + one_minus_beta2 * (g * g);
    const float m_hat = m / correction1;
    const float v_hat = v / correction2;
    p = p - learning_rate * m_hat / (Sqrt(v_hat) + epsilon);
  }
};

// Rules: a method's attributes; At gives the method of a step. `applied`:
// steps applied before it.
struct SgdRule {
  using Method = SgdStep;
  float weight_decay;
  HT_HOST_DEVICE Method At(float rate, int64_t) const {
    return {rate, weight_decay};
  }
};

struct MomentumRule {
  using Method = MomentumStep;
  float weight_decay, mu;
  bool nesterov;
  HT_HOST_DEVICE Method At(float rate, int64_t) const {
    return {rate, weight_decay, mu, nesterov};
  }
};

struct AdamRule {
  using Method = AdamStep;
  double beta1, beta2, epsilon;
  float weight_decay;
  bool decoupled;  // adamw
  HT_HOST_DEVICE Method At(float rate, int64_t applied) const {
    const double t = static_cast<double>(applied) + 1;
    Method method;
    method.learning_rate = rate;
    method.l2 = decoupled ? 0.0f : weight_decay;
    method.shrink = decoupled ? 1.0f - rate * weight_decay : 1.0f;
    method.beta1 = static_cast<float>(beta1);
    method.one_minus_beta1 = static_cast<float>(1 - beta1);
    method.beta2 = static_cast<float>(beta2);
    method.one_minus_beta2 = static_cast<float>(1 - beta2);
    method.epsilon = static_cast<float>(epsilon);
    method.correction1 = static_cast<float>(1 - pow(beta1, t));
    method.correction2 = static_cast<float>(1 - pow(beta2, t));
    return method;
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_H_
