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
struct FinishStats {
  const float* scale;
  float epsilon, count;
  float *mean, *variance, *batch_count, *factor;

  template <typename State>
  HT_DEVICE void operator()(int64_t c, const State& moments) const {
    const float v = moments.count == 0.0
                        ? 0.0f
                        : static_cast<float>(moments.b / moments.count);
    mean[c] = static_cast<float>(moments.a);
    variance[c] = v;
    factor[c] = scale[c] * functors::InverseDeviation(v, epsilon);
    if (c == 0) *batch_count = count;
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
    const FinishStats stats{In(buffers, kScale),
                            epsilon,
                            static_cast<float>(channels.count()),
                            Out(buffers, kBatchMean),
                            Out(buffers, kBatchVariance),
                            Out(buffers, kBatchCount),
                            factor};
    Sum<OwnDeviations>(launch, channels.sums, data, workspace, stats);
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

// a * y_grad + b * (x - mean) + c.
struct NormGradMap {
  static constexpr int kInputs = 2, kNumbers = 4;
  static HT_DEVICE float Apply(float x, float y_grad,
                               const float (&n)[kNumbers]) {
    return n[1] * y_grad + n[2] * (x - n[0]) + n[3];
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
  AddForCuda(registry, "batch_norm", MakeNorm<BatchNormKernel>());
  AddForCuda(registry, "batch_norm_grad", MakeNorm<BatchNormGradKernel>());
  RegisterCudaNormParts(registry);
  RegisterCudaNormElementwise(registry);
  RegisterCudaReluGradNorm(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
