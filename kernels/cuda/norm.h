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

// ---- For Sum.

// About a shift.
struct Deviations {
  static constexpr int kSums = 2, kInputs = 1;
  static constexpr bool kOwnShift = false;
  static HT_DEVICE float First(float x, float, float shift) {
    return x - shift;
  }
  static HT_DEVICE float Second(float x, float, float shift) {
    return (x - shift) * (x - shift);
  }
};

// About the first element of each piece, so that little cancels.
struct OwnDeviations : Deviations {
  static constexpr bool kOwnShift = true;
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

// factor = scale * InverseDeviation(variance), per channel.
void MakeFactors(Launcher& launch, const float* scale, const float* variance,
                 float epsilon, int64_t channels, float* factor);

void RegisterCudaNormParts(KernelRegistry& registry);  // norm_parts.cu
// norm_elementwise.cu
void RegisterCudaNormElementwise(KernelRegistry& registry);
// relu_grad_norm.cu
void RegisterCudaReluGradNorm(KernelRegistry& registry);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_NORM_H_
