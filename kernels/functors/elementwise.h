// Element-wise functors. f32 in, f32 out; the caller rounds to storage.
#ifndef HALFTONE_KERNELS_FUNCTORS_ELEMENTWISE_H_
#define HALFTONE_KERNELS_FUNCTORS_ELEMENTWISE_H_

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

// ---- Two operands.
struct AddOp {
  HT_HOST_DEVICE float operator()(float x, float y) const { return x + y; }
};
struct SubOp {
  HT_HOST_DEVICE float operator()(float x, float y) const { return x - y; }
};
struct MulOp {
  HT_HOST_DEVICE float operator()(float x, float y) const { return x * y; }
};
struct DivOp {
  HT_HOST_DEVICE float operator()(float x, float y) const { return x / y; }
};
struct MaxOp {
  HT_HOST_DEVICE float operator()(float x, float y) const {
    return Greater(x, y);
  }
};
struct MinOp {
  HT_HOST_DEVICE float operator()(float x, float y) const {
    return Lesser(x, y);
  }
};
struct PreluOp {
  HT_HOST_DEVICE float operator()(float x, float alpha) const {
    return x > 0.0f ? x : alpha * x;
  }
};

// ---- Slopes of functions of two operands: (x, y) -> d Out / d x or d y.
struct MaxByXOp {
  HT_HOST_DEVICE float operator()(float x, float y) const {
    return x > y ? 1.0f : 0.0f;
  }
};
struct MaxByYOp {
  HT_HOST_DEVICE float operator()(float x, float y) const {
    return x <= y ? 1.0f : 0.0f;
  }
};
struct MinByXOp {
  HT_HOST_DEVICE float operator()(float x, float y) const {
    return x < y ? 1.0f : 0.0f;
  }
};
struct MinByYOp {
  HT_HOST_DEVICE float operator()(float x, float y) const {
    return x >= y ? 1.0f : 0.0f;
  }
};
struct PreluByXOp {
  HT_HOST_DEVICE float operator()(float x, float alpha) const {
    return x > 0.0f ? 1.0f : alpha;
  }
};
struct PreluByAlphaOp {
  HT_HOST_DEVICE float operator()(float x, float) const {
    return x > 0.0f ? 0.0f : x;
  }
};

// ---- One operand. A NaN stays a NaN in all of them.
struct ReluOp {
  HT_HOST_DEVICE float operator()(float x) const {
    return x <= 0.0f ? 0.0f : x;
  }
};
struct TanhOp {
  static constexpr bool kIsLong = true;
  HT_HOST_DEVICE float operator()(float x) const { return Tanh(x); }
};
// Near, IsNear: see SineOp (trigonometry.h). The bits are the same.
struct SigmoidOp {
  HT_HOST_DEVICE static bool IsNear(float x) { return Abs(x) <= 87.0f; }
  HT_HOST_DEVICE static float Near(float x) {
    return 1.0f / (1.0f + NearExp(-x));
  }
  HT_HOST_DEVICE float operator()(float x) const { return Sigmoid(x); }
  struct Low {
    HT_HOST_DEVICE float operator()(float x) const { return LowSigmoid(x); }
  };
};
struct ExpOp {
  HT_HOST_DEVICE static bool IsNear(float x) { return Abs(x) <= 87.0f; }
  HT_HOST_DEVICE static float Near(float x) { return NearExp(x); }
  HT_HOST_DEVICE float operator()(float x) const { return Exp(x); }
  struct Low {
    HT_HOST_DEVICE float operator()(float x) const { return LowExp(x); }
  };
};
struct LogOp {
  static constexpr bool kIsLong = true;
  HT_HOST_DEVICE float operator()(float x) const { return Log(x); }
};
struct NegOp {
  HT_HOST_DEVICE float operator()(float x) const { return -x; }
  static uint16_t OfBits(uint16_t x) { return x ^ 0x8000u; }
};
struct SquareOp {
  HT_HOST_DEVICE float operator()(float x) const { return x * x; }
};
struct SqrtOp {
  HT_HOST_DEVICE float operator()(float x) const { return Sqrt(x); }
};
struct RsqrtOp {
  HT_HOST_DEVICE float operator()(float x) const { return 1.0f / Sqrt(x); }
};
struct ReciprocalOp {
  HT_HOST_DEVICE float operator()(float x) const { return 1.0f / x; }
};
struct AbsOp {
  HT_HOST_DEVICE float operator()(float x) const { return Abs(x); }
  static uint16_t OfBits(uint16_t x) { return x & 0x7fffu; }
};
struct SignOp {
  HT_HOST_DEVICE float operator()(float x) const {
    const float one = FromBits((Bits(x) & 0x80000000u) | 0x3f800000u);
    return Abs(x) > 0.0f ? one : x + 0.0f;  // 0, never -0, or x's NaN
  }
};
// 0 even for a NaN.
struct ZeroOp {
  HT_HOST_DEVICE float operator()(float) const { return 0.0f; }
};
// scale * x + bias, or scale * (x + bias).
struct ScaleOp {
  float scale, bias;
  bool bias_after_scale;
  HT_HOST_DEVICE float operator()(float x) const {
    return bias_after_scale ? scale * x + bias : scale * (x + bias);
  }
};
// A NaN of x stays.
struct ClipOp {
  float min, max;
  HT_HOST_DEVICE float operator()(float x) const {
    return x < min ? min : (x > max ? max : x);
  }
};

// ---- Gradients: (Out, OutGrad) or (X, OutGrad) -> XGrad.
struct ReluGradOp {
  // The second argument's, or 0 (kernels/cpu/map.h).
  static constexpr bool kSelects = true;
  HT_HOST_DEVICE float operator()(float out, float grad) const {
    return out <= 0.0f ? 0.0f : grad;
  }
};
struct TanhGradOp {
  HT_HOST_DEVICE float operator()(float out, float grad) const {
    return grad * (1.0f - out * out);
  }
};
struct SigmoidGradOp {
  HT_HOST_DEVICE float operator()(float out, float grad) const {
    return grad * (out * (1.0f - out));
  }
};
struct ReciprocalGradOp {
  HT_HOST_DEVICE float operator()(float out, float grad) const {
    return -(grad * out * out);
  }
};
struct AbsGradOp {
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    const float at_zero = x == 0.0f ? 0.0f : x;  // 0, or x's NaN
    return x > 0.0f ? grad : (x < 0.0f ? -grad : at_zero);
  }
};
// Of clip and what else clips: (X or Out, OutGrad).
struct ClipGradOp {
  float min, max;
  HT_HOST_DEVICE float operator()(float x, float grad) const {
    return x > min && x < max ? grad : 0.0f;
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_ELEMENTWISE_H_
