// Activations with settings, and erf. f32 in, f32 out. A NaN stays a NaN in all
// of them; gradients: (X or Out, OutGrad) -> XGrad. At an infinity the limit,
// but for products of 0 and it, which are NaNs.
#ifndef HALFTONE_KERNELS_FUNCTORS_ACTIVATION_H_
#define HALFTONE_KERNELS_FUNCTORS_ACTIVATION_H_

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

struct LeakyReluOp {
  float alpha;
  HT_HOST_DEVICE float operator()(float x) const {
    const float low = alpha * x;
    return x > 0.0f ? x : low;
  }
};
struct LeakyReluGradOp {
  float alpha;
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    const float low = alpha * grad;
    return x > 0.0f ? grad : low;
  }
};

struct EluOp {
  float alpha;
  HT_HOST_DEVICE float operator()(float x) const {
    const float low = alpha * Expm1(x > 0.0f ? 0.0f : x);
    return x > 0.0f ? x : low;
  }
  struct Low {
    float alpha;
    HT_HOST_DEVICE float operator()(float x) const {
      const float low = alpha * LowExpm1(x);
      return x > 0.0f ? x : low;
    }
  };
};
struct EluGradOp {
  float alpha;
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    const float slope = alpha * Exp(x > 0.0f ? 0.0f : x);
    return grad * (x > 0.0f ? 1.0f : slope);
  }
  struct Low {
    float alpha;
    HT_HOST_DEVICE float operator()(float x, float grad) const {
      const float slope = alpha * LowExp(x);
      return grad * (x > 0.0f ? 1.0f : slope);
    }
  };
};

// x / (1 + e^(-beta x)).
struct SwishOp {
  float beta;
  HT_HOST_DEVICE float operator()(float x) const {
    return x / (1.0f + Exp(-(beta * x)));
  }
  struct Low {
    float beta;
    HT_HOST_DEVICE float operator()(float x) const {
      return x / (1.0f + LowExp(-(beta * x)));
    }
  };
};
struct SwishGradOp {
  float beta;
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    const float scaled = beta * x;
    // Sigmoid(scaled) and 1 less it, neither by a difference.
    const float e = ExpUpTo40(-Abs(scaled));
    const float more = 1.0f / (1.0f + e), less = e * more;
    const float sigmoid = scaled > 0.0f ? more : less;
    const float rest = scaled > 0.0f ? less : more;
    return grad * (sigmoid * (1.0f + scaled * rest));
  }
  struct Low {
    float beta;
    // Slopes at a number and at its negative add up to 1.
    HT_HOST_DEVICE float operator()(float x, float grad) const {
      const float scaled = beta * x, magnitude = Abs(scaled);
      const float e = LowExp(-magnitude);
      const float more = 1.0f / (1.0f + e);
      const float tail = e * more * Fma(-magnitude, more, 1.0f);
      return grad * (scaled > 0.0f ? 1.0f - tail : tail);
    }
  };
};

struct HardSwishOp {
  float threshold, scale, offset;
  HT_HOST_DEVICE float operator()(float x) const {
    const float shifted = x + offset;
    const float low = shifted > threshold ? threshold : shifted;
    return x * (low < 0.0f ? 0.0f : low) / scale;
  }
};
struct HardSwishGradOp {
  float threshold, scale, offset;
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    const float shifted = x + offset;
    const float slope = (shifted + x) / scale;
    const float low = shifted <= 0.0f ? 0.0f : slope;
    return grad * (shifted >= threshold ? threshold / scale : low);
  }
};

struct HardSigmoidOp {
  float slope, offset;
  HT_HOST_DEVICE float operator()(float x) const {
    const float line = slope * x + offset;
    const float low = line < 0.0f ? 0.0f : line;
    return low > 1.0f ? 1.0f : low;
  }
};
struct HardSigmoidGradOp {
  // The second argument's, or 0 (kernels/cpu/map.h).
  static constexpr bool kSelects = true;
  float slope;
  HT_HOST_DEVICE float operator()(float out, float grad) const {
    const float inside = slope * grad;
    return out > 0.0f && out < 1.0f ? inside : 0.0f;
  }
};

// ln(1 + e^(beta x)) / beta; x where beta x is above the threshold.
struct SoftplusOp {
  static constexpr bool kIsLong = true;
  float beta, threshold;
  HT_HOST_DEVICE float operator()(float x) const {
    const float scaled = beta * x;
    const float rest = Log1p(ExpUpTo40(-Abs(scaled)));
    const float sum = (scaled > 0.0f ? scaled : 0.0f) + rest;
    return scaled > threshold ? x : sum * (1.0f / beta);
  }
};
struct SoftplusGradOp {
  float beta, threshold;
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    const float scaled = beta * x;
    return grad * (scaled > threshold ? 1.0f : Sigmoid(scaled));
  }
  struct Low {
    float beta, threshold;
    HT_HOST_DEVICE float operator()(float x, float grad) const {
      const float scaled = beta * x, slope = LowSigmoid(scaled);
      return grad * (scaled > threshold ? 1.0f : slope);
    }
  };
};

// x * tanh(ln(1 + e^x)), or x * tanh(x) above the threshold: with e = e^x and
// w = e (e + 2), or e^2 - 1, the tangent is w / (w + 2). It is 1 from 20 on.
struct MishOp {
  static constexpr bool kIsLong = true;
  float threshold;
  HT_HOST_DEVICE float operator()(float x) const {
    const float e = ExpUpTo40(x > 20.0f ? 20.0f : x);
    const float w = x > threshold ? e * e - 1.0f : e * (e + 2.0f);
    return x * (w / (w + 2.0f));
  }
};
struct MishGradOp {
  static constexpr bool kIsLong = true;
  float threshold;
  HT_HOST_DEVICE float Part(float x) const {
    const float near = x > 20.0f ? 20.0f : x;
    const float e = ExpUpTo40(near);
    const bool above = x > threshold;
    const float w = above ? e * e - 1.0f : e * (e + 2.0f);
    const float inverse = 1.0f / (w + 2.0f);
    const float slope = above ? 1.0f : e / (1.0f + e);
    const float bend = 4.0f * ((w + 1.0f) * inverse) * inverse;
    return w * inverse + near * bend * slope;
  }
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    return grad * Part(x);
  }
};

// 2 / sqrt(pi) times the integral of e^(-t * t) from 0 to x. Minimax: about 0
// below 1, of -ln(1 - erf) above; 1 from 4 on. Errors below 1.5 units in the
// last place.
struct ErfOp {
  static constexpr bool kIsLong = true;
  HT_HOST_DEVICE float operator()(float x) const {
    const float a = Abs(x), z = x * x;
    float p = 7.88912294e-5f;
    p = Fma(p, z, -8.02084222e-4f);
    p = Fma(p, z, 5.18953567e-3f);
    p = Fma(p, z, -2.68544443e-2f);
    p = Fma(p, z, 0.112836003f);
    p = Fma(p, z, -0.37612626f);
    p = Fma(p, z, 0.128379166f);
    const float near = Fma(x, p, x);
    // Of integers: a NaN is 4 here, and near.
    const uint32_t bits = Bits(a), four = Bits(4.0f);
    const float t = FromBits(bits < four ? bits : four) - 1.5f;
    float q = -1.8557407e-4f;
    q = Fma(q, t, 1.26944121e-3f);
    q = Fma(q, t, -6.02138648e-3f);
    q = Fma(q, t, 2.58203782e-2f);
    q = Fma(q, t, 0.892641783f);
    q = Fma(q, t, 3.50880122f);
    q = Fma(q, t, 3.38449216f);
    const float tail = 1.0f - NearExp(-q);  // q up to 18
    const float far = x < 0.0f ? -tail : tail;
    return a >= 1.0f ? far : near;  // a NaN is near
  }
};
struct ErfGradOp {
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    const float near = Abs(x) > 11.0f ? 11.0f : Abs(x);
    const SplitExp bell = ExpOfSquare(-1.0f, near);
    const float power = kUnlift * 1.12837917f * bell.power;
    const float slope = Fma(power, bell.rest, power);
    return grad * (x == x ? slope : x);
  }
  struct Low {
    HT_HOST_DEVICE float operator()(float x, float grad) const {
      const float near = Abs(x) > 11.0f ? 11.0f : Abs(x);  // a NaN stays
      return grad * math_internal::LowPower(kUnlift * 1.12837917f,
                                            -1.44269504f * near, near,
                                            math_internal::kLiftedShift);
    }
  };
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_ACTIVATION_H_
