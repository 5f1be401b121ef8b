// Batch normalisation and its gradient as one op each: sums, what a channel's
// sums make, and one more pass.
#include "kernels/common/shapes.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

int64_t Padded(int64_t channels) { return CeilDiv(channels, 64) * 64; }

// The batch's statistics and the factor per channel.
struct FinishNorm {
  FinishStats stats;
  const float* scale;
  float epsilon;
  float* factor;

  template <typename State>
  HT_DEVICE void operator()(int64_t c, const State& moments) const {
    const float variance = stats(c, moments);
    factor[c] = scale[c] * functors::InverseDeviation(variance, epsilon);
  }
};

struct BatchNormKernel {
  Channels channels;
  float epsilon;

  // The partial sums and a factor per channel.
  static int64_t WorkspaceFloats(const Channels& channels) {
    return channels.sum_floats() + Padded(channels.channels);
  }

  void operator()(const Buffers& buffers, Launcher& launch) const {
    enum { kX, kScale, kBias };
    enum { kY, kBatchMean, kBatchVariance, kBatchCount };
    float* workspace = static_cast<float*>(buffers.workspace);
    float* factor = workspace + channels.sum_floats();
    SumData data;
    data.dtype = channels.dtype;
    data.x = buffers.inputs[kX];
    const FinishStats stats{
        static_cast<float>(channels.count()), Out(buffers, kBatchMean),
        Out(buffers, kBatchVariance), Out(buffers, kBatchCount)};
    Sum<OwnDeviations>(launch, channels.sums, data, workspace,
                       FinishNorm{stats, In(buffers, kScale), epsilon, factor});
    MapChannels<NormalizeMap>(
        launch, channels, buffers.inputs[kX], nullptr, buffers.outputs[kY],
        {Out(buffers, kBatchMean), factor, In(buffers, kBias)});
  }
};

// The gradients of scale and bias, and what makes that of x.
struct FinishGrad {
  const float *scale, *variance;
  float epsilon, count;
  float *scale_grad, *bias_grad, *a, *b, *c;

  template <typename State>
  HT_DEVICE void operator()(int64_t i, const State& sums) const {
    const float bias = static_cast<float>(sums.b);
    const float by_scale = static_cast<float>(sums.a) *
                           functors::InverseDeviation(variance[i], epsilon);
    scale_grad[i] = by_scale;
    bias_grad[i] = bias;
    const functors::NormGrad grad = functors::NormGradOf(
        scale[i], variance[i], epsilon, by_scale, bias, count);
    a[i] = grad.a;
    b[i] = grad.b;
    c[i] = grad.c;
  }
};

struct BatchNormGradKernel {
  Channels channels;
  float epsilon;

  // The partial sums and three coefficients per channel.
  static int64_t WorkspaceFloats(const Channels& channels) {
    return channels.sum_floats() + 3 * Padded(channels.channels);
  }

  void operator()(const Buffers& buffers, Launcher& launch) const {
    enum { kX, kYGrad, kScale, kBatchMean, kBatchVariance };
    enum { kXGrad, kScaleGrad, kBiasGrad };
    float* workspace = static_cast<float*>(buffers.workspace);
    float* a = workspace + channels.sum_floats();
    float* b = a + Padded(channels.channels);
    float* c = b + Padded(channels.channels);
    SumData data;
    data.dtype = channels.dtype;
    data.x = buffers.inputs[kX];
    data.y = buffers.inputs[kYGrad];
    data.shift = In(buffers, kBatchMean);
    Sum<NormGradSums>(
        launch, channels.sums, data, workspace,
        FinishGrad{In(buffers, kScale), In(buffers, kBatchVariance), epsilon,
                   static_cast<float>(channels.count()),
                   Out(buffers, kScaleGrad), Out(buffers, kBiasGrad), a, b, c});
    MapChannels<NormGradMap>(launch, channels, data.x, data.y,
                             buffers.outputs[kXGrad],
                             {In(buffers, kBatchMean), a, b, c});
  }
};

template <typename Kernel>
Candidate MakeNorm() {
  return OverImages(
      CudaCandidate("channels",
                    [](const BoundOp& op) {
                      return Kernel{Channels(op.inputs()[0]),
                                    static_cast<float>(op.Float("epsilon"))};
                    }),
      [](const BoundOp& op) {
        return Kernel::WorkspaceFloats(Channels(op.inputs()[0]));
      });
}

}  // namespace

void RegisterCudaNorm(KernelRegistry& registry) {
  AddForSchema(registry, "batch_norm", MakeNorm<BatchNormKernel>());
  AddForSchema(registry, "batch_norm_grad", MakeNorm<BatchNormGradKernel>());
  RegisterCudaNormParts(registry);
  RegisterCudaNormElementwise(registry);
  RegisterCudaReluGradNorm(registry);
  RegisterCudaNormMaxPool(registry);
  RegisterCudaNormGradApply(registry);
  RegisterCudaReluBits(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
