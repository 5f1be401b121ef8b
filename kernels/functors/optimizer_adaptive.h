// Parameter updates whose steps follow each element's own gradients. As
// optimizer.h has them: f32 throughout, formulas in graph/ops/optimizer.cc.
#ifndef HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_ADAPTIVE_H_
#define HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_ADAPTIVE_H_

#include <cmath>
#include <cstdint>

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

struct AdagradStep {
  static constexpr int kStates = 1;
  float learning_rate, weight_decay, epsilon;

  HT_HOST_DEVICE void Step(float& p, float g, float* s) const {
    g = weight_decay != 0.0f ? g + weight_decay * p : g;
    const float sum = s[0] = s[0] + g * g;
    p = p - learning_rate * g / (Sqrt(sum) + epsilon);
  }
};

struct AdagradRule {
  using Method = AdagradStep;
  double rate_decay;
  float weight_decay, epsilon;
  HT_HOST_DEVICE Method At(float rate, int64_t applied) const {
    const double decayed =
        rate / (1 + static_cast<double>(applied) * rate_decay);
    return {static_cast<float>(decayed), weight_decay, epsilon};
  }
};

// The states that are there: mean of squares, mean, momentum.
template <bool kCentered, bool kMomentum>
struct RmspropStep {
  static constexpr int kStates = 1 + kCentered + kMomentum;
  float learning_rate, weight_decay, alpha, one_minus_alpha, epsilon, momentum;

  HT_HOST_DEVICE void Step(float& p, float g, float* s) const {
    g = weight_decay != 0.0f ? g + weight_decay * p : g;
    float spread = s[0] = alpha * s[0] + one_minus_alpha * (g * g);
    if constexpr (kCentered) {
      const float mean = s[1] = alpha * s[1] + one_minus_alpha * g;
      // Rounding may leave less than nothing.
      spread = Greater(spread - mean * mean, 0.0f);
    }
    const float step = g / (Sqrt(spread) + epsilon);
    if constexpr (kMomentum) {
      const float v = s[1 + kCentered] = momentum * s[1 + kCentered] + step;
      p = p - learning_rate * v;
    } else {
      p = p - learning_rate * step;
    }
  }
};

template <bool kCentered, bool kMomentum>
struct RmspropRule {
  using Method = RmspropStep<kCentered, kMomentum>;
  double decay_of_means;
  float weight_decay, epsilon, momentum;
  HT_HOST_DEVICE Method At(float rate, int64_t) const {
    return {rate,
            weight_decay,
            static_cast<float>(decay_of_means),
            static_cast<float>(1 - decay_of_means),
            epsilon,
            momentum};
  }
};

struct AdadeltaStep {
  static constexpr int kStates = 2;
  float learning_rate, weight_decay, rho, one_minus_rho, epsilon;

  HT_HOST_DEVICE void Step(float& p, float g, float* s) const {
    g = weight_decay != 0.0f ? g + weight_decay * p : g;
    const float squares = s[0] = rho * s[0] + one_minus_rho * (g * g);
    const float delta = Sqrt(s[1] + epsilon) / Sqrt(squares + epsilon) * g;
    s[1] = rho * s[1] + one_minus_rho * (delta * delta);
    p = p - learning_rate * delta;
  }
};

struct AdadeltaRule {
  using Method = AdadeltaStep;
  double rho;
  float weight_decay, epsilon;
  HT_HOST_DEVICE Method At(float rate, int64_t) const {
    return {rate, weight_decay, static_cast<float>(rho),
            static_cast<float>(1 - rho), epsilon};
  }
};

struct AdamaxStep {
  static constexpr int kStates = 2;
  float learning_rate;  // over 1 - beta1^t
  float weight_decay, beta1, one_minus_beta1, beta2, epsilon;

  HT_HOST_DEVICE void Step(float& p, float g, float* s) const {
    g = weight_decay != 0.0f ? g + weight_decay * p : g;
    const float m = s[0] = beta1 * s[0] + one_minus_beta1 * g;
    const float u = s[1] = Greater(beta2 * s[1], Abs(g) + epsilon);
    p = p - learning_rate * m / u;
  }
};

struct AdamaxRule {
  using Method = AdamaxStep;
  double beta1, beta2;
  float weight_decay, epsilon;
  HT_HOST_DEVICE Method At(float rate, int64_t applied) const {
    const double t = static_cast<double>(applied) + 1;
    return {static_cast<float>(rate / (1 - pow(beta1, t))),
            weight_decay,
            static_cast<float>(beta1),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            epsilon};
  }
};

struct LionStep {
  static constexpr int kStates = 1;
  float learning_rate;
  float shrink;  // 1 - learning_rate * weight_decay
  float beta1, one_minus_beta1, beta2, one_minus_beta2;

  HT_HOST_DEVICE void Step(float& p, float g, float* s) const {
    const float c = beta1 * s[0] + one_minus_beta1 * g;
    const float sign = c > 0.0f ? 1.0f : (c < 0.0f ? -1.0f : 0.0f);
    p = p * shrink - learning_rate * sign;
    s[0] = beta2 * s[0] + one_minus_beta2 * g;
  }
};

struct LionRule {
  using Method = LionStep;
  double beta1, beta2;
  float weight_decay;
  HT_HOST_DEVICE Method At(float rate, int64_t) const {
    return {rate,
            1.0f - rate * weight_decay,
            static_cast<float>(beta1),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2)};
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_OPTIMIZER_ADAPTIVE_H_
