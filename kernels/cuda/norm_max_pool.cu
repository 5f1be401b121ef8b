// The patterns norm_max_pool, max_pool_grad_norm and max_pool_grad_apply: what
// a batch norm and its relu make is pooled on its way, and its gradient is made
// again, of what is pooled, by each of the two that read it. Each op's result
// is rounded to the tensors' dtype, as if it had been stored, and sums are
// added in the order of bn_grad_reduce: the bits are the body's. Channels are
// innermost.
#include "kernels/common/norm_fusions.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/norm_sums.h"
#include "kernels/cuda/pool.h"
#include "kernels/functors/elementwise.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// relu(norm(x)), of what lies in memory: an Image of ArgmaxBody.
struct NormalImage {
  DType dtype;
  const void* x;
  const float *mean, *factor, *bias;

  template <int V>
  struct Numbers {
    float mean[V], factor[V], bias[V];
  };
  template <int V>
  HT_DEVICE void LoadNumbers(int64_t channel, Numbers<V>& to) const {
    LoadFloats(mean, channel, to.mean);
    LoadFloats(factor, channel, to.factor);
    LoadFloats(bias, channel, to.bias);
  }
  template <int V>
  HT_DEVICE void Load(int64_t i, const Numbers<V>& n, float (&to)[V]) const {
    LoadVector(dtype, x, i, to);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      to[k] = functors::Normalize(to[k], n.mean[k], n.factor[k], n.bias[k]);
    }
    Unpack(dtype, Pack(dtype, to), to);
#pragma unroll
    for (int k = 0; k < V; ++k) to[k] = functors::ReluOp()(to[k]);
  }
};

class NormMaxPool {
 public:
  explicit NormMaxPool(const BoundOp& fusion)
      : at_(fusion),
        dtype_(fusion.outputs()[at_.out].dtype),
        elements_(fusion.outputs()[at_.out].elements()) {}

  // A factor per channel.
  int64_t workspace_floats() const { return at_.shape.channels; }

  void operator()(const Buffers& buffers, Launcher& launch) const {
    const NormAt& norm = at_.norm;
    float* const factor = static_cast<float*>(buffers.workspace);
    MakeFactors(launch, In(buffers, norm.scale), In(buffers, norm.variance),
                norm.epsilon, at_.shape.channels, factor);
    const NormalImage image = {dtype_, buffers.inputs[norm.x],
                               In(buffers, norm.mean), factor,
                               In(buffers, norm.bias)};
    void* const out = buffers.outputs[at_.out];
    void* const argmax = buffers.outputs[at_.argmax];
    const bool aligned =
        Aligned({image.x, image.mean, factor, image.bias, out, argmax});
    const ArgmaxBody<NormalImage> body(at_.shape, image, dtype_, out, argmax);
    Map<1>(launch, body, elements_, PoolVector(at_.shape, dtype_, aligned));
  }

 private:
  NormMaxPoolAt at_;
  DType dtype_;
  int64_t elements_;
};

MaxPoolGather GatherOf(const PooledGradAt& at, DType dtype,
                       const Buffers& buffers) {
  return MaxPoolGather(at.shape, dtype, buffers.inputs[at.grad],
                       buffers.inputs[at.argmax]);
}

struct PooledGradData : NormSumsData {
  MaxPoolGather gather;
};

// V channels of one row, for NormSumsKernel.
template <int V>
struct PooledRow {
  using Data = PooledGradData;

  Raw x[1];

  HT_DEVICE void Load(const PooledGradData& data, int64_t at) {
    x[0] = LoadRaw<V>(data.dtype, data.x[0], at);
  }
  HT_DEVICE void MakeGrad(const PooledGradData& data, int64_t at,
                          float (&g)[V]) const {
    data.gather(at, g);
    Unpack(data.dtype, Pack(data.dtype, g), g);
  }
};

class MaxPoolGradNorm {
 public:
  explicit MaxPoolGradNorm(const BoundOp& fusion)
      : pool_(fusion),
        norm_(FusedOp(fusion).Of("norm")),
        channels_(fusion.inputs()[norm_.x]) {}

  int64_t workspace_floats() const {
    return channels_.sums.workspace_floats(2);
  }

  void operator()(const Buffers& buffers, Launcher& launch) const {
    PooledGradData data = {};
    data.dtype = channels_.dtype;
    data.x[0] = buffers.inputs[norm_.x];
    data.mean[0] = In(buffers, norm_.mean);
    data.gather = GatherOf(pool_, channels_.dtype, buffers);
    float* const partial = static_cast<float*>(buffers.workspace);
    const int vector = channels_.VectorFor(
        Aligned({data.x[0], data.mean[0], buffers.inputs[pool_.grad],
                 buffers.inputs[pool_.argmax]}));
    if (vector == 8) {
      LaunchRows<8>(launch, data, partial);
    } else if (vector == 4) {
      LaunchRows<4>(launch, data, partial);
    } else {
      LaunchRows<1>(launch, data, partial);
    }
    CombineSums<sums_internal::TwoSums, 2>(
        launch, channels_.sums, partial,
        FinishGradSums{In(buffers, norm_.variance), norm_.epsilon,
                       OutOrNull(buffers, norm_.scale_grad),
                       OutOrNull(buffers, norm_.bias_grad)});
  }

 private:
  template <int V>
  void LaunchRows(Launcher& launch, const PooledGradData& data,
                  float* partial) const {
    launch(NormSumsKernel<V, 1, PooledRow<V>>, ColumnBlocks(channels_.sums, V),
           kThreads, channels_.sums, data, partial);
  }

  PooledGradAt pool_;
  NormSumsAt norm_;
  Channels channels_;
};

// For Map: NormGradMap of x and the gradient.
struct MaxPoolGradApplyBody {
  MaxPoolGather gather;
  const void* x;
  void* out;
  Divider channels;
  const float* numbers[NormGradMap::kNumbers];

  template <int V>
  struct Loaded {
    Raw x;
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    loaded.x = LoadRaw<V>(gather.dtype, x, i);
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    const int64_t channel = channels.Remainder(i);
    float a[V], g[V], n[NormGradMap::kNumbers][V];
    gather(i, g);
    Unpack(gather.dtype, Pack(gather.dtype, g), g);
    Unpack(gather.dtype, loaded.x, a);
#pragma unroll
    for (int j = 0; j < NormGradMap::kNumbers; ++j) {
      LoadFloats(numbers[j], channel, n[j]);
    }
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const float own[] = {n[0][k], n[1][k], n[2][k], n[3][k]};
      a[k] = NormGradMap::Apply(a[k], g[k], own);
    }
    StoreVector(gather.dtype, out, i, a);
  }
};

class MaxPoolGradApply {
 public:
  explicit MaxPoolGradApply(const BoundOp& fusion)
      : pool_(fusion),
        norm_(FusedOp(fusion).Of("norm")),
        dtype_(fusion.inputs()[norm_.x].dtype),
        elements_(fusion.inputs()[norm_.x].elements()) {}

  int64_t workspace_floats() const { return 0; }

  void operator()(const Buffers& buffers, Launcher& launch) const {
    const int64_t channels = pool_.shape.channels;
    const MaxPoolGradApplyBody body = {
        GatherOf(pool_, dtype_, buffers),
        buffers.inputs[norm_.x],
        buffers.outputs[0],
        Divider(channels > 0 ? channels : 1),
        {In(buffers, norm_.mean), In(buffers, norm_.a), In(buffers, norm_.b),
         In(buffers, norm_.c0)}};
    const bool aligned = Aligned(
        {body.x, body.out, body.gather.out_grad, body.gather.argmax,
         body.numbers[0], body.numbers[1], body.numbers[2], body.numbers[3]});
    Map<1>(launch, body, elements_, PoolVector(pool_.shape, dtype_, aligned));
  }

 private:
  PooledGradAt pool_;
  NormApplyAt norm_;
  DType dtype_;
  int64_t elements_;
};

template <typename Kernel>
void Register(KernelRegistry& registry, absl::string_view pattern,
              bool (*supports)(const BoundOp&)) {
  Candidate candidate =
      CudaCandidate("pixels", [](const BoundOp& op) { return Kernel(op); });
  candidate.supports = supports;
  candidate.workspace_bytes = [](const BoundOp& op) {
    return Kernel(op).workspace_floats() * static_cast<int64_t>(sizeof(float));
  };
  registry.AddPattern(pattern, {DType::kF32, DType::kF16, DType::kBF16},
                      {Layout::kChannelsLast}, candidate);
}

}  // namespace

void RegisterCudaNormMaxPool(KernelRegistry& registry) {
  Register<NormMaxPool>(registry, "norm_max_pool", SupportsNormMaxPool);
  Register<MaxPoolGradNorm>(registry, "max_pool_grad_norm",
                            SupportsMaxPoolGradNorm);
  Register<MaxPoolGradApply>(registry, "max_pool_grad_apply",
                             SupportsMaxPoolGradApply);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
