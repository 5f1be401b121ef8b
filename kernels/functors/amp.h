// Loss scaling and gradient clipping on scalars.
#ifndef HALFTONE_KERNELS_FUNCTORS_AMP_H_
#define HALFTONE_KERNELS_FUNCTORS_AMP_H_

#include <cstdint>

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

// A gradient onto the sum of those before it.
struct AccumulateOp {
  float scale;
  HT_HOST_DEVICE float operator()(float x, float sum) const {
    return scale * (sum + x);
  }
};

// Of member `i`, whose sums of squares lie `stride` elements apart.
HT_HOST_DEVICE inline double SquaresOfRanks(const float* squares,
                                            int64_t stride, int ranks,
                                            int64_t i) {
  double sum = 0;
  for (int r = 0; r < ranks; ++r) sum += squares[r * stride + i];
  return sum;
}

// The least place that a rank found to be bad; `members`: none.
HT_HOST_DEVICE inline int32_t FirstBadOfRanks(const int32_t* places,
                                              int64_t stride, int ranks,
                                              int32_t members) {
  int32_t first = members;
  for (int r = 0; r < ranks; ++r) {
    const int32_t place = places[r * stride];
    if (place >= 0 && place < first) first = place;
  }
  return first;
}

// The first norm that is not finite, else the largest.
HT_HOST_DEVICE inline int32_t LargestNorm(const float* norms, int32_t count) {
  int32_t largest = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (!IsFinite(norms[i])) return i;
    if (norms[i] > norms[largest]) largest = i;
  }
  return largest;
}

struct LossScaleState {
  float scale;
  int32_t good, bad;
};

// No scale falls below the smallest normal number, as none grows beyond the
// largest finite one: 1 / scale would be infinite, and no step applied again.
HT_HOST_DEVICE inline float SmallestLossScale() {
  return FromBits(0x00800000u);
}

// Products with the ratios are made in double and rounded once, as PyTorch
// does; a ratio that is an f32 gives the f32 product, as Paddle has it.
struct LossScalePolicy {
  int32_t incr_every, decr_every;
  double incr_ratio, decr_ratio;
  double floor;    // 0: SmallestLossScale()
  double ceiling;  // infinity: none
  bool clamp;      // a step beyond it ends there, else it is not taken
};

// What an overflow leaves of the scale.
HT_HOST_DEVICE inline float LoweredLossScale(float scale,
                                             const LossScalePolicy& policy) {
  float lower = static_cast<float>(scale * policy.decr_ratio);
  if (lower < policy.floor) lower = static_cast<float>(policy.floor);
  return lower < SmallestLossScale() ? SmallestLossScale() : lower;
}

HT_HOST_DEVICE inline float RaisedLossScale(float scale,
                                            const LossScalePolicy& policy) {
  const float higher = static_cast<float>(scale * policy.incr_ratio);
  if (higher > policy.ceiling) {
    return policy.clamp ? static_cast<float>(policy.ceiling) : scale;
  }
  return IsFinite(higher) ? higher : scale;
}

HT_HOST_DEVICE inline LossScaleState UpdateLossScale(
    LossScaleState s, bool found_inf, const LossScalePolicy& policy) {
  if (found_inf) {
    s.good = 0;
    if (++s.bad < policy.decr_every) return s;
    s.scale = LoweredLossScale(s.scale, policy);
    s.bad = 0;
    return s;
  }
  s.bad = 0;
  if (++s.good < policy.incr_every) return s;
  s.scale = RaisedLossScale(s.scale, policy);
  s.good = 0;
  return s;
}

// The seed of the backward pass: loss_scaling x n_r / largest. The weight is
// rounded first, so that it is exactly 1 where the counts are equal.
HT_HOST_DEVICE inline float GradientSeed(float loss_scaling, float count,
                                         float largest) {
  return largest == 0.0f ? 0.0f : loss_scaling * (count / largest);
}

// `p`: what the reduction multiplied by, a power of two.
HT_HOST_DEVICE inline float GradientInvScale(float loss_scaling, float p,
                                             float count, float largest) {
  return count == 0.0f ? 0.0f : largest / (loss_scaling * p * count);
}

// In double: the product of two counts is exact, and with one rank, or ranks
// of equal counts, so is their share where f32 has it.
HT_HOST_DEVICE inline float CountShare(float total, float count,
                                       float all_counts) {
  if (total == 0.0f || count == 0.0f) return 1.0f;
  return static_cast<float>(static_cast<double>(total) * count / all_counts);
}

// 1 for a norm that is not finite: such a step is rejected anyway.
HT_HOST_DEVICE inline float ClipFactor(float norm, float max_norm) {
  if (!IsFinite(norm)) return 1.0f;
  const float factor = max_norm / (norm + 1e-6f);
  return factor < 1.0f ? factor : 1.0f;
}

struct TimesOp {
  float factor;
  HT_HOST_DEVICE float operator()(float x) const { return x * factor; }
};

// What a rank that counts nothing contributes is 0, whatever was divided by
// that count.
struct KeepCountedOp {
  float count;
  HT_HOST_DEVICE float operator()(float x) const {
    return count == 0.0f ? 0.0f : x;
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_AMP_H_
