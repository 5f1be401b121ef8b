// Losses of single elements, and their slopes along the first operand. f32 in,
// f32 out. A NaN stays a NaN.
#ifndef HALFTONE_KERNELS_FUNCTORS_POINTWISE_LOSS_H_
#define HALFTONE_KERNELS_FUNCTORS_POINTWISE_LOSS_H_

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

struct SquareErrorOp {
  HT_HOST_DEVICE float operator()(float x, float y) const {
    return (x - y) * (x - y);
  }
};
struct SquareErrorByXOp {
  HT_HOST_DEVICE float operator()(float x, float y) const {
    return 2.0f * (x - y);
  }
};

// r * r / 2 up to delta, then a straight line; r = y - x.
struct HuberOp {
  float delta;
  HT_HOST_DEVICE float operator()(float x, float y) const {
    const float r = Abs(y - x);
    return r > delta ? delta * (r - 0.5f * delta) : 0.5f * r * r;
  }
};
struct HuberByXOp {
  float delta;
  HT_HOST_DEVICE float operator()(float x, float y) const {
    const float r = x - y;
    const float low = r < -delta ? -delta : r;
    return low > delta ? delta : low;
  }
};

// Of a probability. Logarithms end at -100, as Paddle's and PyTorch's do. Near:
// neither x nor 1 - x is 0 or subnormal, so that they do not come to that.
struct BceOp {
  HT_HOST_DEVICE static bool IsNear(float x, float) {
    const uint32_t least = Bits(math_internal::kLeastNormal);
    return Bits(x) - least < Bits(1.0f) - least;
  }
  HT_HOST_DEVICE static float Near(float x, float y) {
    return (y - 1.0f) * NearLog(1.0f - x) - y * NearLog(x);
  }
  HT_HOST_DEVICE float operator()(float x, float y) const {
    const float yes = Log(x), no = Log(1.0f - x);
    return (y - 1.0f) * (no < -100.0f ? -100.0f : no) -
           y * (yes < -100.0f ? -100.0f : yes);
  }
  struct Low {  // x + 0: -0 is a share, too
    HT_HOST_DEVICE float operator()(float x, float y) const {
      const float rest = 1.0f - x;
      const float loss =
          (y - 1.0f) * LowLogOfShare(rest) - y * LowLogOfShare(x + 0.0f);
      return x * rest >= 0.0f ? loss : QuietNaN();
    }
  };
};
struct BceByXOp {
  HT_HOST_DEVICE float operator()(float x, float y) const {
    const float spread = (1.0f - x) * x;
    return (x - y) / (spread < 1e-12f ? 1e-12f : spread);
  }
};

// Of a logarithm of a probability; 0 where the target is not above 0.
struct KldivOp {
  static constexpr bool kIsLong = true;
  HT_HOST_DEVICE static float Part(float target) { return Log(target); }
  HT_HOST_DEVICE static float With(float log, float x, float target) {
    const float loss = target * (log - x);
    return target <= 0.0f ? 0.0f : loss;
  }
  HT_HOST_DEVICE float operator()(float x, float target) const {
    return With(Part(target), x, target);
  }
};
struct KldivByXOp {
  HT_HOST_DEVICE float operator()(float x, float target) const {
    const float slope = x != x ? x : -target;
    return target <= 0.0f ? 0.0f : slope;
  }
};

struct LogLossOp {
  float epsilon;
  HT_HOST_DEVICE float operator()(float x, float y) const {
    return -(y * Log(x + epsilon)) - (1.0f - y) * Log((1.0f - x) + epsilon);
  }
};
struct LogLossByXOp {
  float epsilon;
  HT_HOST_DEVICE float operator()(float x, float y) const {
    return (1.0f - y) / ((1.0f - x) + epsilon) - y / (x + epsilon);
  }
};

// (1 - y) * x + weight * ln(1 + e^-x), and its slope. With a weight of 1 it is
// max(x, 0) - x * y + ln(1 + e^-|x|).
struct SigmoidCrossEntropy {
  float ignored;  // a label

  // What hangs on x alone: ln(1 + e^-x) and 1 / (1 + e^x).
  struct Soft {
    static constexpr bool kIsLong = true;
    HT_HOST_DEVICE float operator()(float x) const {
      const float below = x < 0.0f ? -x : 0.0f;
      return Log1p(ExpUpTo40(-Abs(x))) + below;
    }
  };
  struct Share {
    static constexpr bool kIsLong = true;
    HT_HOST_DEVICE float operator()(float x) const { return Sigmoid(-x); }
  };

  HT_HOST_DEVICE float LossWith(float soft, float x, float y,
                                float weight) const {
    const float loss = (1.0f - y) * x + weight * soft;
    return y == ignored ? 0.0f : loss;
  }
  HT_HOST_DEVICE float SlopeWith(float share, float y, float weight) const {
    const float slope = (1.0f - y) - weight * share;
    return y == ignored ? 0.0f : slope;
  }
  HT_HOST_DEVICE float Loss(float x, float y, float weight) const {
    return LossWith(Soft()(x), x, y, weight);
  }
  HT_HOST_DEVICE float Slope(float x, float y, float weight) const {
    return SlopeWith(Share()(x), y, weight);
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_POINTWISE_LOSS_H_
