// Batch normalisation of one element, and what a channel's numbers make.
#ifndef HALFTONE_KERNELS_FUNCTORS_NORM_H_
#define HALFTONE_KERNELS_FUNCTORS_NORM_H_

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

// From the sums of x - shift and of its square. A NaN stays one.
HT_HOST_DEVICE inline MeanVariance FinalizeStats(float sum, float squared_sum,
                                                 float count, float shift) {
  if (count == 0.0f) return {shift, 0.0f};
  const float m = sum / count;
  const float variance = squared_sum / count - m * m;
  return {shift + m, variance < 0.0f ? 0.0f : variance};
}

struct SumPair {
  float sum, squared_sum;
};

// The reverse: the sums about `shift` of `count` elements.
HT_HOST_DEVICE inline SumPair SumsAbout(float mean, float variance, float count,
                                        float shift) {
  if (count == 0.0f) return {0.0f, 0.0f};
  const float d = mean - shift;
  return {count * d, count * (variance + d * d)};
}

// Sums of x and of its square as the sums about `shift`.
HT_HOST_DEVICE inline SumPair MovedSums(float sum, float squared_sum,
                                        float count, float shift) {
  const float moved = sum - count * shift;
  return {moved, squared_sum - shift * (sum + moved)};
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
