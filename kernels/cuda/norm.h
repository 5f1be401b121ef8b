// What the parts of batch normalisation share.
#ifndef HALFTONE_KERNELS_CUDA_NORM_H_
#define HALFTONE_KERNELS_CUDA_NORM_H_

#include <cstdint>

#include "kernels/cuda/channels.h"
#include "kernels/functors/norm.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

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

// ---- For Sum.

// About the first element of each piece, so that little cancels.
struct OwnDeviations {
  static constexpr int kSums = 2, kInputs = 1;
  static constexpr bool kOwnShift = true;
  static HT_DEVICE float First(float x, float, float shift) {
    return x - shift;
  }
  static HT_DEVICE float Second(float x, float, float shift) {
    return (x - shift) * (x - shift);
  }
};

// What these make of a channel: its statistics; a Finish of Sum.
struct FinishStats {
  float count;
  float *mean, *variance, *count_out;

  template <typename State>
  HT_DEVICE float operator()(int64_t c, const State& moments) const {
    const float v = moments.count == 0.0
                        ? 0.0f
                        : static_cast<float>(moments.b / moments.count);
    mean[c] = static_cast<float>(moments.a);
    variance[c] = v;
    if (c == 0) *count_out = count;
    return v;
  }
};

// About the mean: sums of y_grad * (x - mean) and y_grad.
struct NormGradSums {
  static constexpr int kSums = 2, kInputs = 2;
  static constexpr bool kOwnShift = false;
  static HT_DEVICE float First(float x, float y_grad, float mean) {
    return y_grad * (x - mean);
  }
  static HT_DEVICE float Second(float, float y_grad, float) { return y_grad; }
};

// What these sums make of a channel; null: nobody reads it.
struct FinishGradSums {
  const float* variance;
  float epsilon;
  float *scale_grad, *bias_grad;

  template <typename State>
  HT_DEVICE void operator()(int64_t c, const State& sums) const {
    if (scale_grad != nullptr) {
      scale_grad[c] = static_cast<float>(sums.a) *
                      functors::InverseDeviation(variance[c], epsilon);
    }
    if (bias_grad != nullptr) bias_grad[c] = static_cast<float>(sums.b);
  }
};

// ---- For MapChannels.

// (x - mean) * factor + bias.
struct NormalizeMap {
  static constexpr int kInputs = 1, kNumbers = 3;
  static HT_DEVICE float Apply(float x, float, const float (&n)[kNumbers]) {
    return functors::Normalize(x, n[0], n[1], n[2]);
  }
};

// a * y_grad + b * (x - mean) + c, of mean, a, b, c.
struct NormGradMap {
  static constexpr int kInputs = 2, kNumbers = 4;
  static HT_DEVICE float Apply(float x, float y_grad,
                               const float (&n)[kNumbers]) {
    return n[1] * y_grad + n[2] * (x - n[0]) + n[3];
  }
};

// factor = scale * InverseDeviation(variance), per channel.
void MakeFactors(Launcher& launch, const float* scale, const float* variance,
                 float epsilon, int64_t channels, float* factor);

void RegisterCudaNormParts(KernelRegistry& registry);  // norm_parts.cu
// norm_elementwise.cu
void RegisterCudaNormElementwise(KernelRegistry& registry);
// relu_grad_norm.cu
void RegisterCudaReluGradNorm(KernelRegistry& registry);
void RegisterCudaNormMaxPool(KernelRegistry& registry);  // norm_max_pool.cu
// norm_grad_apply.cu
void RegisterCudaNormGradApply(KernelRegistry& registry);
void RegisterCudaReluBits(KernelRegistry& registry);  // relu_bits.cu

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_NORM_H_
