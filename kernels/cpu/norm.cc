// Batch normalisation and its gradient as one op each.
#include "kernels/cpu/norm.h"

#include "kernels/common/dispatch.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

struct BatchNormKernel {
  Channels channels;
  DType dtype;
  float epsilon;

  // The partial sums and a factor per channel.
  static int64_t WorkspaceFloats(const Channels& channels) {
    return channels.workspace_floats() + channels.channels();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    enum { kX, kScale, kBias };
    enum { kY, kBatchMean, kBatchVariance, kBatchCount };
    float* mean = Out(buffers, kBatchMean);
    float* variance = Out(buffers, kBatchVariance);
    float* workspace = static_cast<float*>(buffers.workspace);
    float* factor = workspace + channels.workspace_floats();
    channels.Moments(dtype, buffers.inputs[kX], mean, variance, workspace,
                     stream.threads());
    *Out(buffers, kBatchCount) = static_cast<float>(channels.count());
    NormFactors(In(buffers, kScale), variance, epsilon, channels.channels(),
                factor);
    channels.Map(dtype, buffers.inputs[kX], nullptr, buffers.outputs[kY],
                 stream.threads(),
                 NormalizeMap{mean, factor, In(buffers, kBias)});
  }
};

// a * y_grad + b * (x - mean) + c.
struct NormGradMap {
  const float* mean;
  const functors::NormGrad* grads;

  struct Channel {
    float mean;
    functors::NormGrad grad;
    float operator()(float x, float y_grad) const {
      return grad.a * y_grad + grad.b * (x - mean) + grad.c;
    }
  };
  Channel At(int64_t c) const { return {mean[c], grads[c]}; }
};

struct BatchNormGradKernel {
  Channels channels;
  DType dtype;
  float epsilon;

  // The partial sums and a NormGrad per channel.
  static int64_t WorkspaceFloats(const Channels& channels) {
    return channels.workspace_floats() + 3 * channels.channels();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    enum { kX, kYGrad, kScale, kBatchMean, kBatchVariance };
    enum { kXGrad, kScaleGrad, kBiasGrad };
    const void* x = buffers.inputs[kX];
    const void* y_grad = buffers.inputs[kYGrad];
    const float* mean = In(buffers, kBatchMean);
    float* workspace = static_cast<float*>(buffers.workspace);
    channels.Sum<NormGradSums>(dtype, x, y_grad, mean, Out(buffers, kScaleGrad),
                               Out(buffers, kBiasGrad), workspace,
                               stream.threads());
    DivideByDeviation(In(buffers, kBatchVariance), epsilon, channels.channels(),
                      Out(buffers, kScaleGrad));
    auto* grads = reinterpret_cast<functors::NormGrad*>(
        workspace + channels.workspace_floats());
    for (int64_t c = 0; c < channels.channels(); ++c) {
      grads[c] = functors::NormGradOf(
          In(buffers, kScale)[c], In(buffers, kBatchVariance)[c], epsilon,
          Out(buffers, kScaleGrad)[c], Out(buffers, kBiasGrad)[c],
          static_cast<float>(channels.count()));
    }
    channels.Map(dtype, x, y_grad, buffers.outputs[kXGrad], stream.threads(),
                 NormGradMap{mean, grads});
  }
};

template <typename Kernel>
Candidate MakeNorm() {
  return OverImages(
      MakeCandidate("channels",
                    [](const BoundOp& op) {
                      return Kernel{Channels(op.inputs()[0]),
                                    op.inputs()[0].dtype,
                                    static_cast<float>(op.Float("epsilon"))};
                    }),
      [](const BoundOp& op) {
        return Kernel::WorkspaceFloats(Channels(op.inputs()[0]));
      });
}

}  // namespace

void RegisterCpuNorm(KernelRegistry& registry) {
  AddForSchema(registry, "batch_norm", MakeNorm<BatchNormKernel>());
  AddForSchema(registry, "batch_norm_grad", MakeNorm<BatchNormGradKernel>());
  RegisterCpuNormParts(registry);
}

}  // namespace kernels
}  // namespace halftone
