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

struct BatchNormGradKernel {
  Channels channels;
  DType dtype;
  float epsilon;

  // The partial sums and a, b and c per channel.
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
    const int64_t n = channels.channels();
    float* const a = workspace + channels.workspace_floats();
    float *const b = a + n, *const c = b + n;
    NormGradCoefficients({In(buffers, kScale), In(buffers, kBatchVariance),
                          Out(buffers, kScaleGrad), Out(buffers, kBiasGrad),
                          static_cast<float>(channels.count()), epsilon},
                         n, a, b, c);
    channels.Map(dtype, x, y_grad, buffers.outputs[kXGrad], stream.threads(),
                 GradApplyMap{mean, a, b, c});
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
  RegisterCpuNormFusions(registry);
  RegisterCpuNormMaxPool(registry);
  RegisterCpuReluBits(registry);
}

}  // namespace kernels
}  // namespace halftone
