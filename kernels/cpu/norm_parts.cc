// The ops that a split batch normalisation consists of.
#include <functional>
#include <utility>
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/common/gather.h"
#include "kernels/cpu/norm.h"
#include "kernels/functors/tree_sum.h"

namespace halftone {
namespace kernels {
namespace {

float Scalar(const Buffers& buffers, int i) { return *In(buffers, i); }

// ---- On images.

struct ImageKernel {
  Channels channels;
  DType dtype;
  float epsilon;

  static ImageKernel Of(const BoundOp& op) {
    const bool has = op.KnowsAttr("epsilon");
    return {Channels(op.inputs()[0]), op.inputs()[0].dtype,
            has ? static_cast<float>(op.Float("epsilon")) : 0.0f};
  }
};

struct ChannelStatsKernel : ImageKernel {
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    channels.Moments(dtype, buffers.inputs[0], Out(buffers, 0), Out(buffers, 1),
                     static_cast<float*>(buffers.workspace), stream.threads());
    *Out(buffers, 2) = static_cast<float>(channels.count());
  }
};

struct ScaleBiasKernel : ImageKernel {
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    enum { kX, kScale, kBias, kMean, kVariance };
    float* factor = static_cast<float*>(buffers.workspace);
    NormFactors(In(buffers, kScale), In(buffers, kVariance), epsilon,
                channels.channels(), factor);
    channels.Map(dtype, buffers.inputs[kX], nullptr, buffers.outputs[0],
                 stream.threads(),
                 NormalizeMap{In(buffers, kMean), factor, In(buffers, kBias)});
  }
};

struct GradReduceKernel : ImageKernel {
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    enum { kX, kYGrad, kBatchMean, kBatchVariance };
    channels.Sum<NormGradSums>(
        dtype, buffers.inputs[kX], buffers.inputs[kYGrad],
        In(buffers, kBatchMean), Out(buffers, 0), Out(buffers, 1),
        static_cast<float*>(buffers.workspace), stream.threads());
    DivideByDeviation(In(buffers, kBatchVariance), epsilon, channels.channels(),
                      Out(buffers, 0));
  }
};

struct GradApplyKernel : ImageKernel {
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    enum { kX, kYGrad, kMean, kA, kB, kC0 };
    channels.Map(dtype, buffers.inputs[kX], buffers.inputs[kYGrad],
                 buffers.outputs[0], stream.threads(),
                 GradApplyMap{In(buffers, kMean), In(buffers, kA),
                              In(buffers, kB), In(buffers, kC0)});
  }
};

template <typename Kernel>
Candidate MakeImage(std::function<int64_t(const BoundOp&)> floats) {
  return OverImages(MakeCandidate("channels",
                                  [](const BoundOp& op) {
                                    return Kernel{ImageKernel::Of(op)};
                                  }),
                    std::move(floats));
}

void RegisterImageParts(KernelRegistry& registry) {
  const auto sums = [](const BoundOp& op) {
    return Channels(op.inputs()[0]).workspace_floats();
  };
  const auto factors = [](const BoundOp& op) {
    return Channels(op.inputs()[0]).channels();
  };
  AddForSchema(registry, "channel_stats", MakeImage<ChannelStatsKernel>(sums));
  AddForSchema(registry, "scale_bias", MakeImage<ScaleBiasKernel>(factors));
  AddForSchema(registry, "bn_grad_reduce", MakeImage<GradReduceKernel>(sums));
  AddForSchema(registry, "bn_grad_apply", MakeImage<GradApplyKernel>(nullptr));
}

// ---- On vectors.

// Inputs are rank 0's, others' lie where GatherShape says.
struct CombineStats {
  std::vector<int64_t> channels;  // of each norm
  GatherShape gathered;
  bool in_tree;

  explicit CombineStats(const BoundOp& op)
      : gathered(GatherShapeOf(op)), in_tree(op.Str("order") == "tree") {
    for (int i = 0; i < op.InputCount("Mean"); ++i) {
      channels.push_back(op.inputs()[i].elements());
    }
  }
  void operator()(const Buffers& buffers, runtime::Stream&) const {
    const int norms = static_cast<int>(channels.size());
    const auto first = [&](int i) {
      return static_cast<const float*>(gathered.First(buffers.inputs[i]));
    };
    for (int i = 0; i < norms; ++i) {
      const functors::RankStats stats{
          first(i), first(norms + i), first(2 * norms + i),
          gathered.stride_bytes / static_cast<int64_t>(sizeof(float)),
          gathered.ranks};
      for (int64_t c = 0; c < channels[i]; ++c) {
        const functors::MeanVariance all =
            functors::CombineRanks(stats, c, in_tree);
        Out(buffers, i)[c] = all.mean;
        Out(buffers, norms + i)[c] = all.variance;
      }
      *Out(buffers, 2 * norms + i) = functors::CombinedCount(stats);
    }
  }
};

struct GradCoefficients {
  int64_t channels;
  float epsilon;

  void operator()(const Buffers& buffers, runtime::Stream&) const {
    enum { kScale, kVariance, kScaleGradSum, kBiasGradSum, kCount };
    NormGradCoefficients({In(buffers, kScale), In(buffers, kVariance),
                          In(buffers, kScaleGradSum), In(buffers, kBiasGradSum),
                          Scalar(buffers, kCount), epsilon},
                         channels, Out(buffers, 0), Out(buffers, 1),
                         Out(buffers, 2));
  }
};

struct RunningStats {
  int64_t channels;
  float momentum, complement;

  void operator()(const Buffers& buffers, runtime::Stream&) const {
    enum { kOldMean, kOldVariance, kBatchMean, kBatchVariance, kFoundInf };
    const bool rejected = *static_cast<const bool*>(buffers.inputs[kFoundInf]);
    for (int i = 0; i < 2; ++i) {  // the mean, the variance
      const float* old = In(buffers, kOldMean + i);
      const float* batch = In(buffers, kBatchMean + i);
      float* out = Out(buffers, i);
      for (int64_t c = 0; c < channels; ++c) {
        out[c] = rejected ? old[c]
                          : functors::RunningStat(old[c], batch[c], momentum,
                                                  complement);
      }
    }
  }
};

void RegisterVectorParts(KernelRegistry& registry) {
  AddForSchema(registry, "combine_stats",
               MakeCandidate(
                   "loop", [](const BoundOp& op) { return CombineStats(op); }));
  AddForSchema(registry, "bn_grad_coefficients",
               MakeCandidate("loop", [](const BoundOp& op) {
                 return GradCoefficients{
                     op.inputs()[0].elements(),
                     static_cast<float>(op.Float("epsilon"))};
               }));
  AddForSchema(registry, "running_stats",
               MakeCandidate("loop", [](const BoundOp& op) {
                 const double momentum = op.Float("momentum");
                 return RunningStats{op.inputs()[0].elements(),
                                     static_cast<float>(momentum),
                                     static_cast<float>(1 - momentum)};
               }));
}

}  // namespace

void RegisterCpuNormParts(KernelRegistry& registry) {
  RegisterImageParts(registry);
  RegisterVectorParts(registry);
}

}  // namespace kernels
}  // namespace halftone
