// Parameter updates of one element, and the learning rate. f32 throughout.
// Formulas: the docs of graph/ops/optimizer.cc.
#ifndef HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_H_
#define HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_H_

#include <cmath>
#include <cstdint>

#include "kernels/functors/amp.h"
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

  // For a gradient of that norm: also no longer than max_norm.
  HT_HOST_DEVICE void LimitNorm(float squared_norm, float max_norm) {
    clip_factor *= ClipFactor(Sqrt(squared_norm), max_norm);
  }

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

// Each method: Step(parameter, gradient, states) updates in place; there are
// kStates states, kMostStates at most.
inline constexpr int kMostStates = 3;

struct SgdStep {
  static constexpr int kStates = 0;
  float learning_rate, weight_decay;

  HT_HOST_DEVICE void Step(float& p, float g, float*) const {
    g = weight_decay != 0.0f ? g + weight_decay * p : g;
    p = p - learning_rate * g;
  }
};

struct MomentumStep {
  static constexpr int kStates = 1;
  float learning_rate, weight_decay, mu;
  bool nesterov;

  HT_HOST_DEVICE void Step(float& p, float g, float* s) const {
    g = weight_decay != 0.0f ? g + weight_decay * p : g;
    const float v = s[0] = mu * s[0] + g;
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

  HT_HOST_DEVICE void Step(float& p, float g, float* s) const {
    g = l2 != 0.0f ? g + l2 * p : g;
    p = p * shrink;
    const float m = s[0] = beta1 * s[0] + one_minus_beta1 * g;
    const float v = s[1] = beta2 * s[1] + one_minus_beta2 * (g * g);
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

// Averages of parameters over the steps.
struct AverageStep {
  float decay, rest;
  HT_HOST_DEVICE float operator()(float average, float p) const {
    return decay * average + rest * p;
  }
};

struct AverageRule {
  double most;    // of the decay
  bool warms_up;  // it is less at first
  HT_HOST_DEVICE AverageStep At(int64_t applied) const {
    const double t = static_cast<double>(applied) + 1;
    const double first = (1 + t) / (10 + t);
    const double d = warms_up && first < most ? first : most;
    return {static_cast<float>(d), static_cast<float>(1 - d)};
  }
};

// ---- The learning rate.

enum class RatePolicy {
  kConstant,
  kCosine,
  kLinear,
  kPoly,
  kExponential,
  kPiecewise
};

struct RateSettings {
  RatePolicy policy = RatePolicy::kConstant;
  double gamma = 1, power = 1, min_ratio = 0;
};

// The factor on the base rate after the warm-up; `step` counts applied steps.
// Computed in double: it is one number a step. Not for kPiecewise.
HT_HOST_DEVICE inline double RateFactor(const RateSettings& s, double step,
                                        double total, double warm) {
  const double length = total - warm > 1 ? total - warm : 1;
  double t = (step - warm) / length;
  t = t < 0 ? 0 : (t > 1 ? 1 : t);
  const double rest = 1 - s.min_ratio;
  switch (s.policy) {
    case RatePolicy::kCosine:
      return s.min_ratio + rest * (1 + cos(3.14159265358979323846 * t)) / 2;
    case RatePolicy::kLinear:
      return 1 - rest * t;
    case RatePolicy::kPoly:
      return s.min_ratio + rest * pow(1 - t, s.power);
    case RatePolicy::kExponential:
      return pow(s.gamma, step - warm);
    default:
      return 1;
  }
}

// values[number of boundaries passed]; a boundary up to 1 is a fraction of
// the run, one above 1 a step. `boundaries` ascend.
HT_HOST_DEVICE inline double PiecewiseFactor(const double* boundaries,
                                             const double* values, int count,
                                             double step, double total) {
  int passed = 0;
  while (passed < count) {
    const double b = boundaries[passed];
    const double at = b <= 1 ? step / (total > 1 ? total : 1) : step;
    if (b > at) break;
    ++passed;
  }
  return values[passed];
}

// `schedule`: base rate, total steps, warm-up steps; `count` boundaries. A
// warm-up of a fraction of an epoch may end within a step: it takes that whole
// step, so that the last one has the base rate and none has more.
HT_HOST_DEVICE inline float LearningRate(const RateSettings& settings,
                                         const double* boundaries,
                                         const double* values, int count,
                                         int64_t applied,
                                         const float* schedule) {
  const double step = static_cast<double>(applied);
  const double total = schedule[1], warm = ceil(schedule[2]);
  double factor;
  if (step < warm) {
    factor = (step + 1) / warm;
  } else if (settings.policy == RatePolicy::kPiecewise) {
    factor = PiecewiseFactor(boundaries, values, count, step, total);
  } else {
    factor = RateFactor(settings, step, total, warm);
  }
  return static_cast<float>(schedule[0] * factor);
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_H_
