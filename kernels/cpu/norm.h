// What the parts of batch normalisation share.
#ifndef HALFTONE_KERNELS_CPU_NORM_H_
#define HALFTONE_KERNELS_CPU_NORM_H_

#include <cstdint>

#include "absl/base/attributes.h"
#include "kernels/common/norm_fusions.h"
#include "kernels/cpu/channels.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/norm.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// The f32 tensors of a call.
inline const float* In(const Buffers& buffers, int i) {
  return static_cast<const float*>(buffers.inputs[i]);
}
inline float* Out(const Buffers& buffers, int i) {
  return static_cast<float*>(buffers.outputs[i]);
}
// Null: nobody reads it.
inline float* OutOrNull(const Buffers& buffers, int i) {
  return i < 0 ? nullptr : Out(buffers, i);
}

// For Channels::Map: (x - mean) * factor + bias.
struct NormalizeMap {
  const float *mean, *factor, *bias;

  struct Channel {
    float mean, factor, bias;
    float operator()(float x, float) const {
      return functors::Normalize(x, mean, factor, bias);
    }
  };
  Channel At(int64_t c) const { return {mean[c], factor[c], bias[c]}; }
  // That of the channels from `c` on.
  NormalizeMap From(int64_t c) const {
    return {mean + c, factor + c, bias + c};
  }
};

// For Channels::Sum about the mean: sums of y_grad * (x - mean) and y_grad.
struct NormGradSums {
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Terms(const V& x, const V& y_grad,
                                                 const V& mean, V* first,
                                                 V* second) {
    *first = y_grad * (x - mean);
    *second = y_grad;
  }
};

// For Channels::Map: a * y_grad + b * (x - mean) + c.
struct GradApplyMap {
  const float *mean, *a, *b, *c;

  struct Channel {
    float mean, a, b, c;
    float operator()(float x, float y_grad) const {
      return a * y_grad + b * (x - mean) + c;
    }
  };
  Channel At(int64_t i) const { return {mean[i], a[i], b[i], c[i]}; }
};

// What GradApplyMap takes of each channel, from the sums of `count` elements
// over all that were normalised together.
struct NormGradInputs {
  const float *scale, *variance, *scale_grad_sum, *bias_grad_sum;
  float count, epsilon;
};
inline void NormGradCoefficients(const NormGradInputs& in, int64_t channels,
                                 float* a, float* b, float* c) {
  for (int64_t i = 0; i < channels; ++i) {
    const functors::NormGrad grad = functors::NormGradOf(
        in.scale[i], in.variance[i], in.epsilon, in.scale_grad_sum[i],
        in.bias_grad_sum[i], in.count);
    a[i] = grad.a;
    b[i] = grad.b;
    c[i] = grad.c;
  }
}

// factor[c] = scale[c] / sqrt(variance[c] + epsilon).
inline void NormFactors(const float* scale, const float* variance,
                        float epsilon, int64_t channels, float* factor) {
  for (int64_t c = 0; c < channels; ++c) {
    factor[c] = scale[c] * functors::InverseDeviation(variance[c], epsilon);
  }
}

// Of a norm in a fusion; `factor` is memory for one of each channel.
inline NormalizeMap MakeNormalizeMap(const Buffers& buffers, const NormAt& norm,
                                     int64_t channels, float* factor) {
  NormFactors(In(buffers, norm.scale), In(buffers, norm.variance), norm.epsilon,
              channels, factor);
  return {In(buffers, norm.mean), factor, In(buffers, norm.bias)};
}

// In place, of a vector of channels (LowVector); for bodies of ForIsa.
template <typename Low>
void NormalLanes(const NormalizeMap& map, int64_t channel, float* x) {
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
  for (int k = 0; k < Low::kSize; ++k) x[k] = map.At(channel + k)(x[k], x[k]);
}
// The same of a LowVectors, rounded as if it had been stored as T.
template <typename Some, typename T>
void NormalizeVectors(const NormalizeMap& map, int64_t channel,
                      typename Some::Lanes& x) {
#pragma GCC unroll 2
  for (int v = 0; v < Some::kVectors; ++v) {
    NormalLanes<typename Some::Low>(map, channel + Some::Channel(v), x[v]);
  }
  Some::Round(x, T());
}
template <typename Low>
void ReluOfLanes(float* x) {
  const functors::ReluOp relu;
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
  for (int k = 0; k < Low::kSize; ++k) x[k] = relu(x[k]);
}

// relu of norm, the norm rounded as if it had been stored as T: of lanes in
// place, for bodies of ForIsa, and of one.
template <typename Low, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void NormalReluLanes(
    const NormalizeMap& map, int64_t channel, float* x) {
  NormalLanes<Low>(map, channel, x);
  Low::Round(x, T());
  ReluOfLanes<Low>(x);
}
template <typename T>
float NormalRelu(const NormalizeMap& map, int64_t channel, float x) {
  return functors::ReluOp()(
      static_cast<float>(static_cast<T>(map.At(channel)(x, x))));
}

// sums[c] /= sqrt(variance[c] + epsilon).
inline void DivideByDeviation(const float* variance, float epsilon,
                              int64_t channels, float* sums) {
  for (int64_t c = 0; c < channels; ++c) {
    sums[c] *= functors::InverseDeviation(variance[c], epsilon);
  }
}

// What bn_grad_reduce makes of the partial sums of its gradient.
inline void FinishNormSums(const Buffers& buffers, const NormSumsAt& norm,
                           const Channels& channels, const float* partial,
                           int threads) {
  float* const scale_grad = OutOrNull(buffers, norm.scale_grad);
  channels.CombineSums(partial, scale_grad, OutOrNull(buffers, norm.bias_grad),
                       threads);
  if (scale_grad == nullptr) return;
  DivideByDeviation(In(buffers, norm.variance), norm.epsilon,
                    channels.channels(), scale_grad);
}

// Of a fusion's Kernel(fusion), with its WorkspaceFloats(threads).
template <typename Kernel>
Candidate NormFusionCandidate(absl::string_view name,
                              bool (*supports)(const BoundOp&)) {
  Candidate candidate =
      MakeCandidate(name, [](const BoundOp& op) { return Kernel(op); });
  candidate.supports = supports;
  candidate.workspace_bytes = [](const BoundOp& op) {
    return Kernel(op).WorkspaceFloats(op.context().threads) *
           static_cast<int64_t>(sizeof(float));
  };
  return candidate;
}

void RegisterCpuNormParts(KernelRegistry& registry);    // norm_parts.cc
void RegisterCpuNormFusions(KernelRegistry& registry);  // norm_fusions.cc
void RegisterCpuNormMaxPool(KernelRegistry& registry);  // norm_max_pool.cc
void RegisterCpuReluBits(KernelRegistry& registry);     // relu_bits.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_NORM_H_
