// The ops that a split batch normalisation consists of.
#include <functional>
#include <utility>
#include <vector>

#include "kernels/common/gather.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/pieces.h"
#include "kernels/functors/tree_sum.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// ---- On images.

struct ImageKernel {
  Channels channels;
  float epsilon;

  static ImageKernel Of(const BoundOp& op) {
    const bool has = op.KnowsAttr("epsilon");
    return {Channels(op.inputs()[0]),
            has ? static_cast<float>(op.Float("epsilon")) : 0.0f};
  }
};

struct ChannelStatsKernel : ImageKernel {
  void operator()(const Buffers& buffers, Launcher& launch) const {
    SumData data;
    data.dtype = channels.dtype;
    data.x = buffers.inputs[0];
    Sum<OwnDeviations>(
        launch, channels.sums, data, buffers.workspace,
        FinishStats{static_cast<float>(channels.count()), Out(buffers, 0),
                    Out(buffers, 1), Out(buffers, 2)});
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

struct GradApplyKernel : ImageKernel {
  void operator()(const Buffers& buffers, Launcher& launch) const {
    MapChannels<NormGradMap>(
        launch, channels, buffers.inputs[0], buffers.inputs[1],
        buffers.outputs[0],
        {In(buffers, 2), In(buffers, 3), In(buffers, 4), In(buffers, 5)});
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
  AddForSchema(registry, "channel_stats", MakeImage<ChannelStatsKernel>(sums));
  AddForSchema(registry, "scale_bias", MakeImage<ScaleBiasKernel>(factors));
  AddForSchema(registry, "bn_grad_reduce", MakeImage<GradReduceKernel>(sums));
  AddForSchema(registry, "bn_grad_apply", MakeImage<GradApplyKernel>(nullptr));
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

struct GradCoefficients {
  float epsilon;
  const float *scale, *variance, *scale_grad, *bias_grad, *count;
  float *a, *b, *c0;

  explicit GradCoefficients(const BoundOp& op)
      : epsilon(static_cast<float>(op.Float("epsilon"))) {}
  void Bind(const Buffers& buffers) {
    scale = In(buffers, 0);
    variance = In(buffers, 1);
    scale_grad = In(buffers, 2);
    bias_grad = In(buffers, 3);
    count = In(buffers, 4);
    a = Out(buffers, 0);
    b = Out(buffers, 1);
    c0 = Out(buffers, 2);
  }
  HT_DEVICE void operator()(int64_t c) const {
    const functors::NormGrad grad = functors::NormGradOf(
        scale[c], variance[c], epsilon, scale_grad[c], bias_grad[c], *count);
    a[c] = grad.a;
    b[c] = grad.b;
    c0[c] = grad.c;
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

// ---- Of all ranks: one launch for many norms, one thread for a channel.

constexpr int32_t kCombinedChannels = kThreads;

// Per norm: mean, variance and count in (the first rank's) and out.
using CombineTable = PieceTable<6, 256>;

__global__ void __launch_bounds__(kThreads)
    CombineStatsKernel(const __grid_constant__ CombineTable table,
                       int64_t stride, int ranks, bool in_tree) {
  const Piece piece = table.At(static_cast<int32_t>(blockIdx.x));
  if (threadIdx.x >= piece.n) return;
  const int64_t c = piece.begin + threadIdx.x;
  void* const* data = table.data[piece.member];
  const functors::RankStats stats{
      static_cast<const float*>(data[0]), static_cast<const float*>(data[1]),
      static_cast<const float*>(data[2]), stride, ranks};
  const functors::MeanVariance all = functors::CombineRanks(stats, c, in_tree);
  static_cast<float*>(data[3])[c] = all.mean;
  static_cast<float*>(data[4])[c] = all.variance;
  if (c == 0) *static_cast<float*>(data[5]) = functors::CombinedCount(stats);
}

struct CombineStats {
  std::vector<TensorDesc> means;
  GatherShape gathered;
  bool in_tree;

  explicit CombineStats(const BoundOp& op)
      : gathered(GatherShapeOf(op)), in_tree(op.Str("order") == "tree") {
    const auto inputs = op.inputs().subspan(0, op.InputCount("Mean"));
    means.assign(inputs.begin(), inputs.end());
  }
  void operator()(const Buffers& buffers, Launcher& launch) const {
    const int norms = static_cast<int>(means.size());
    const int64_t stride =
        gathered.stride_bytes / static_cast<int64_t>(sizeof(float));
    for (int begin = 0; begin < norms; begin += CombineTable::kMost) {
      CombineTable table;
      FillTable(means, begin, kCombinedChannels, &table);
      for (int i = 0; i < table.count; ++i) {
        for (int slot = 0; slot < 3; ++slot) {
          const int at = slot * norms + begin + i;
          // What is read is not written: a table has one type of pointers.
          table.data[i][slot] =
              const_cast<void*>(gathered.First(buffers.inputs[at]));
          table.data[i][3 + slot] = buffers.outputs[at];
        }
      }
      launch(CombineStatsKernel, table.pieces(), kThreads, table, stride,
             gathered.ranks, in_tree);
    }
  }
};

void RegisterVectorParts(KernelRegistry& registry) {
  AddForSchema(registry, "combine_stats",
               CudaCandidate("vector", [](const BoundOp& op) {
                 return CombineStats(op);
               }));
  AddForSchema(registry, "bn_grad_coefficients",
               MakeVector<GradCoefficients>());
  AddForSchema(registry, "running_stats", MakeVector<RunningStats>());
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
