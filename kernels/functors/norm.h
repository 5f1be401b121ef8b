// Batch normalisation of one element, and what a channel's numbers make.
#ifndef HALFTONE_KERNELS_FUNCTORS_NORM_H_
#define HALFTONE_KERNELS_FUNCTORS_NORM_H_

#include <cstdint>

#include "graph/base/half.h"
#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

HT_HOST_DEVICE inline float InverseDeviation(float variance, float epsilon) {
  return 1.0f / Sqrt(variance + epsilon);
}

// `factor`: scale * InverseDeviation.
HT_HOST_DEVICE inline float Normalize(float x, float mean, float factor,
                                      float bias) {
  return (x - mean) * factor + bias;
}

// Normalize as x * factor + offset, both rounded to f16: what the rounding of
// `factor` changes at the mean, `offset` makes good.
struct HalfFactors {
  half factor, offset;
};
HT_HOST_DEVICE inline HalfFactors HalfFactorsOf(float scale, float bias,
                                                float mean, float variance,
                                                float epsilon) {
  const half factor(scale * InverseDeviation(variance, epsilon));
  return {factor, half(bias - mean * static_cast<float>(factor))};
}

struct MeanVariance {
  float mean, variance;
};

// From the plain sums of x and of its square, which a library's fused kernels
// make: where |mean| is far above the deviation, what is left of the variance
// is their rounding. A NaN stays one.
HT_HOST_DEVICE inline MeanVariance StatsOfSums(float sum, float squared_sum,
                                               float count) {
  if (count == 0.0f) return {0.0f, 0.0f};
  const double n = static_cast<double>(count);
  const double mean = static_cast<double>(sum) / n;
  const double variance = static_cast<double>(squared_sum) / n - mean * mean;
  return {static_cast<float>(mean),
          variance < 0.0 ? 0.0f : static_cast<float>(variance)};
}

// Mean and sum of squared deviations of `count` elements, combined pairwise:
// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
// computing sample variances" (1979). Nothing cancels, however far the mean is
// from 0.
struct Moments {
  double mean = 0, m2 = 0, count = 0;

  HT_HOST_DEVICE void Take(double other_mean, double other_m2,
                           double other_count) {
    if (other_count == 0) return;
    const double share = other_count / (count + other_count);
    const double delta = other_mean - mean;
    mean += delta * share;
    m2 += other_m2 + delta * delta * share * count;
    count += other_count;
  }
};

// A channel's statistics on every rank: rank r's numbers lie r * stride behind
// rank 0's.
struct RankStats {
  const float *mean, *variance, *count;
  int64_t stride;
  int ranks;
};

// Those of all ranks' elements, in the order of the ranks. Of one rank: its
// own, bit for bit; of nothing: 0.
HT_HOST_DEVICE inline MeanVariance CombineRanks(const RankStats& stats,
                                                int64_t channel) {
  Moments all;
  for (int r = 0; r < stats.ranks; ++r) {
    const int64_t at = r * stats.stride;
    const double count = static_cast<double>(stats.count[at]);
    all.Take(static_cast<double>(stats.mean[at + channel]),
             static_cast<double>(stats.variance[at + channel]) * count, count);
  }
  if (all.count == 0) return {0.0f, 0.0f};
  return {static_cast<float>(all.mean), static_cast<float>(all.m2 / all.count)};
}
HT_HOST_DEVICE inline float CombinedCount(const RankStats& stats) {
  double count = 0;
  for (int r = 0; r < stats.ranks; ++r) {
    count += static_cast<double>(stats.count[r * stats.stride]);
  }
  return static_cast<float>(count);
}

// The gradient of x is a * y_grad + b * (x - mean) + c.
struct NormGrad {
  float a, b, c;
};

// `scale_grad`: sum of y_grad * (x - mean) * r; `bias_grad`: sum of y_grad.
// No elements have no gradient.
HT_HOST_DEVICE inline NormGrad NormGradOf(float scale, float variance,
                                          float epsilon, float scale_grad,
                                          float bias_grad, float count) {
  const float r = InverseDeviation(variance, epsilon);
  const float a = scale * r;
  if (count == 0.0f) return {a, 0.0f, 0.0f};
  return {a, -a * r * scale_grad / count, -a * bias_grad / count};
}

// `complement`: 1 - momentum, rounded once.
HT_HOST_DEVICE inline float RunningStat(float old, float batch, float momentum,
                                        float complement) {
  return momentum * old + complement * batch;
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_NORM_H_
