// The ops that a split batch normalisation consists of.
#include <functional>
#include <utility>

#include "kernels/common/shapes.h"
#include "kernels/cuda/norm.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// ---- On images.

struct ImageKernel {
  Channels channels;
  float epsilon;

  static ImageKernel Of(const BoundOp& op) {
    const bool has = op.schema().FindAttr("epsilon") >= 0;
    return {Channels(op.inputs()[0]),
            has ? static_cast<float>(op.Float("epsilon")) : 0.0f};
  }
};

struct FinishSums {
  float *sum, *squared_sum, *count_out;
  float count;

  template <typename State>
  HT_DEVICE void operator()(int64_t c, const State& sums) const {
    sum[c] = static_cast<float>(sums.a);
    squared_sum[c] = static_cast<float>(sums.b);
    if (c == 0) *count_out = count;
  }
};

struct ChannelStatsKernel : ImageKernel {
  void operator()(const Buffers& buffers, Launcher& launch) const {
    SumData data;
    data.dtype = channels.dtype;
    data.x = buffers.inputs[0];
    data.shift = In(buffers, 1);
    Sum<Deviations>(
        launch, channels.sums, data, buffers.workspace,
        FinishSums{Out(buffers, 0), Out(buffers, 1), Out(buffers, 2),
                   static_cast<float>(channels.count())});
  }
};

__global__ void __launch_bounds__(kThreads)
    FactorKernel(const float* scale, const float* variance, float epsilon,
                 int64_t channels, float* factor) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c >= channels) return;
  factor[c] = scale[c] * functors::InverseDeviation(variance[c], epsilon);
}

struct ScaleBiasKernel : ImageKernel {
  void operator()(const Buffers& buffers, Launcher& launch) const {
    enum { kX, kScale, kBias, kMean, kVariance };
    float* factor = static_cast<float*>(buffers.workspace);
    MakeFactors(launch, In(buffers, kScale), In(buffers, kVariance), epsilon,
                channels.channels, factor);
    MapChannels<NormalizeMap>(launch, channels, buffers.inputs[kX], nullptr,
                              buffers.outputs[0],
                              {In(buffers, kMean), factor, In(buffers, kBias)});
  }
};

struct GradReduceKernel : ImageKernel {
  void operator()(const Buffers& buffers, Launcher& launch) const {
    enum { kX, kYGrad, kBatchMean, kBatchVariance };
    SumData data;
    data.dtype = channels.dtype;
    data.x = buffers.inputs[kX];
    data.y = buffers.inputs[kYGrad];
    data.shift = In(buffers, kBatchMean);
    Sum<NormGradSums>(launch, channels.sums, data, buffers.workspace,
                      FinishGradSums{In(buffers, kBatchVariance), epsilon,
                                     Out(buffers, 0), Out(buffers, 1)});
  }
};

// a * y_grad + b * x + c.
struct GradApplyMap {
  static constexpr int kInputs = 2, kNumbers = 3;
  static HT_DEVICE float Apply(float x, float y_grad,
                               const float (&n)[kNumbers]) {
    return n[0] * y_grad + n[1] * x + n[2];
  }
};

struct GradApplyKernel : ImageKernel {
  void operator()(const Buffers& buffers, Launcher& launch) const {
    MapChannels<GradApplyMap>(launch, channels, buffers.inputs[0],
                              buffers.inputs[1], buffers.outputs[0],
                              {In(buffers, 2), In(buffers, 3), In(buffers, 4)});
  }
};

template <typename Kernel>
Candidate MakeImage(std::function<int64_t(const BoundOp&)> floats) {
  return OverImages(CudaCandidate("channels",
                                  [](const BoundOp& op) {
                                    return Kernel{ImageKernel::Of(op)};
                                  }),
                    std::move(floats));
}

void RegisterImageParts(KernelRegistry& registry) {
  const auto sums = [](const BoundOp& op) {
    return Channels(op.inputs()[0]).sum_floats();
  };
  const auto factors = [](const BoundOp& op) {
    return Channels(op.inputs()[0]).channels;
  };
  AddForCuda(registry, "channel_stats", MakeImage<ChannelStatsKernel>(sums));
  AddForCuda(registry, "scale_bias", MakeImage<ScaleBiasKernel>(factors));
  AddForCuda(registry, "bn_grad_reduce", MakeImage<GradReduceKernel>(sums));
  AddForCuda(registry, "bn_grad_apply", MakeImage<GradApplyKernel>(nullptr));
}

// ---- On vectors: one thread for a channel.

template <typename Body>
__global__ void __launch_bounds__(kThreads)
    VectorKernel(const Body body, int64_t channels) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c < channels) body(c);
}

// body(c) computes what belongs to channel c.
template <typename Body>
Candidate MakeVector() {
  return CudaCandidate("vector", [](const BoundOp& op) {
    return [body = Body(op), n = op.inputs()[0].elements()](
               const Buffers& buffers, Launcher& launch) {
      Body bound = body;
      bound.Bind(buffers);
      launch(VectorKernel<Body>, CeilDiv(n, kThreads), kThreads, bound, n);
    };
  });
}

struct Finalize {
  const float *sum, *squared_sum, *count, *shift;
  float *mean, *variance;

  explicit Finalize(const BoundOp&) {}
  void Bind(const Buffers& b) {
    sum = In(b, 0);
    squared_sum = In(b, 1);
    count = In(b, 2);
    shift = In(b, 3);
    mean = Out(b, 0);
    variance = Out(b, 1);
  }
  HT_DEVICE void operator()(int64_t c) const {
    const functors::MeanVariance stats =
        functors::FinalizeStats(sum[c], squared_sum[c], *count, shift[c]);
    mean[c] = stats.mean;
    variance[c] = stats.variance;
  }
};

struct GradCoefficients {
  float epsilon;
  const float *scale, *mean, *variance, *scale_grad, *bias_grad, *count;
  float *a, *b, *c0;

  explicit GradCoefficients(const BoundOp& op)
      : epsilon(static_cast<float>(op.Float("epsilon"))) {}
  void Bind(const Buffers& buffers) {
    scale = In(buffers, 0);
    mean = In(buffers, 1);
    variance = In(buffers, 2);
    scale_grad = In(buffers, 3);
    bias_grad = In(buffers, 4);
    count = In(buffers, 5);
    a = Out(buffers, 0);
    b = Out(buffers, 1);
    c0 = Out(buffers, 2);
  }
  HT_DEVICE void operator()(int64_t c) const {
    const functors::NormGrad grad = functors::NormGradOf(
        scale[c], variance[c], epsilon, scale_grad[c], bias_grad[c], *count);
    a[c] = grad.a;
    b[c] = grad.b;
    c0[c] = grad.c - grad.b * mean[c];
  }
};

struct LocalSums {
  const float *mean, *variance, *count, *shift;
  float *sum, *squared_sum, *count_out;

  explicit LocalSums(const BoundOp&) {}
  void Bind(const Buffers& b) {
    mean = In(b, 0);
    variance = In(b, 1);
    count = In(b, 2);
    shift = In(b, 3);
    sum = Out(b, 0);
    squared_sum = Out(b, 1);
    count_out = Out(b, 2);
  }
  HT_DEVICE void operator()(int64_t c) const {
    const functors::SumPair sums =
        functors::SumsAbout(mean[c], variance[c], *count, shift[c]);
    sum[c] = sums.sum;
    squared_sum[c] = sums.squared_sum;
    if (c == 0) *count_out = *count;
  }
};

struct RunningStats {
  float momentum, complement;
  const float *old_mean, *old_variance, *batch_mean, *batch_variance;
  const bool* rejected;
  float *mean, *variance;

  explicit RunningStats(const BoundOp& op)
      : momentum(static_cast<float>(op.Float("momentum"))),
        complement(static_cast<float>(1 - op.Float("momentum"))) {}
  void Bind(const Buffers& b) {
    old_mean = In(b, 0);
    old_variance = In(b, 1);
    batch_mean = In(b, 2);
    batch_variance = In(b, 3);
    rejected = static_cast<const bool*>(b.inputs[4]);
    mean = Out(b, 0);
    variance = Out(b, 1);
  }
  HT_DEVICE float Next(float old, float batch) const {
    return *rejected ? old
                     : functors::RunningStat(old, batch, momentum, complement);
  }
  HT_DEVICE void operator()(int64_t c) const {
    mean[c] = Next(old_mean[c], batch_mean[c]);
    variance[c] = Next(old_variance[c], batch_variance[c]);
  }
};

void RegisterVectorParts(KernelRegistry& registry) {
  AddForCuda(registry, "bn_finalize", MakeVector<Finalize>());
  AddForCuda(registry, "bn_grad_coefficients", MakeVector<GradCoefficients>());
  AddForCuda(registry, "bn_local_sums", MakeVector<LocalSums>());
  AddForCuda(registry, "running_stats", MakeVector<RunningStats>());
}

}  // namespace

void MakeFactors(Launcher& launch, const float* scale, const float* variance,
                 float epsilon, int64_t channels, float* factor) {
  launch(FactorKernel, CeilDiv(channels, kThreads), kThreads, scale, variance,
         epsilon, channels, factor);
}

void RegisterCudaNormParts(KernelRegistry& registry) {
  RegisterImageParts(registry);
  RegisterVectorParts(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
