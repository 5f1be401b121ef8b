// The pattern norm_elementwise: relu(norm(x) + y) in one pass, where y may be
// a norm, too, and sum and relu may be missing. Each op's result is rounded to
// the tensors' dtype, as if it had been stored: the bits are the body's.
#include <vector>

#include "kernels/cuda/norm.h"
#include "kernels/functors/elementwise.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// What Normalize takes, f32 of [C].
struct NormNumbers {
  const float *mean, *factor, *bias;
};

struct NormBody {
  DType dtype;
  bool add, relu;
  bool neighbours;  // channels are innermost
  Divider inner, channels;
  const void *x, *y;
  void* out;
  NormNumbers norm[2];  // of x, of y; without `mean`: y as it is

  template <int V>
  struct Loaded {
    Raw x, y;
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    loaded.x = LoadRaw<V>(dtype, x, i);
    if (add) loaded.y = LoadRaw<V>(dtype, y, i);
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    const int64_t channel = channels.Remainder(inner.Divide(i));
    float a[V];
    Unpack(dtype, loaded.x, a);
    Apply(norm[0], channel, a);
    if (add) {
      float b[V];
      Unpack(dtype, loaded.y, b);
      if (norm[1].mean != nullptr) Apply(norm[1], channel, b);
#pragma unroll
      for (int k = 0; k < V; ++k) a[k] = functors::AddOp()(a[k], b[k]);
      Unpack(dtype, Pack(dtype, a), a);
    }
    if (relu) {
#pragma unroll
      for (int k = 0; k < V; ++k) a[k] = functors::ReluOp()(a[k]);
    }
    StoreVector(dtype, out, i, a);
  }

 private:
  template <int V>
  HT_DEVICE void Numbers(const float* from, int64_t channel,
                         float (&to)[V]) const {
    if (neighbours) {
      LoadFloats(from, channel, to);
      return;
    }
    const float number = from[channel];
#pragma unroll
    for (int k = 0; k < V; ++k) to[k] = number;
  }
  template <int V>
  HT_DEVICE void Apply(const NormNumbers& n, int64_t channel,
                       float (&a)[V]) const {
    float mean[V], factor[V], bias[V];
    Numbers(n.mean, channel, mean);
    Numbers(n.factor, channel, factor);
    Numbers(n.bias, channel, bias);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      a[k] = functors::Normalize(a[k], mean[k], factor[k], bias[k]);
    }
    Unpack(dtype, Pack(dtype, a), a);
  }
};

// Where a scale_bias of the body finds its inputs among the fusion's.
struct NormAt {
  int x, scale, bias, mean, variance;
  float epsilon;

  explicit NormAt(const BoundOp& op)
      : x(ArgumentPosition(op, "X")),
        scale(ArgumentPosition(op, "Scale")),
        bias(ArgumentPosition(op, "Bias")),
        mean(ArgumentPosition(op, "Mean")),
        variance(ArgumentPosition(op, "Variance")),
        epsilon(static_cast<float>(op.Float("epsilon"))) {}
};

class NormElementwise {
 public:
  explicit NormElementwise(const BoundOp& fusion)
      : channels_(fusion.outputs()[0]) {
    const FusedOp fused(fusion);
    relu_ = fused.Has("relu");
    add_ = fused.Has("add");
    const BoundOp norm = fused.Of("norm");
    norms_.emplace_back(norm);
    if (fused.Has("other_norm")) {
      norms_.emplace_back(fused.Of("other_norm"));
      y_ = norms_[1].x;
    } else if (add_) {
      const BoundOp add = fused.Of("add");
      y_ = ArgumentPosition(add, Reads(add, "X", norm) ? "Y" : "X");
    }
  }

  // A factor per channel and norm.
  int64_t workspace_floats() const {
    return static_cast<int64_t>(norms_.size()) * padded();
  }

  void operator()(const Buffers& buffers, Launcher& launch) const {
    NormBody body = {};
    body.dtype = channels_.dtype;
    body.add = add_;
    body.relu = relu_;
    body.neighbours = channels_.inner == 1;
    body.inner = Divider(channels_.inner);
    body.channels = Divider(channels_.channels > 0 ? channels_.channels : 1);
    body.x = buffers.inputs[norms_[0].x];
    if (add_) body.y = buffers.inputs[y_];
    body.out = buffers.outputs[0];
    bool aligned = Aligned({body.x, body.y, body.out});
    for (size_t i = 0; i < norms_.size(); ++i) {
      const NormAt& at = norms_[i];
      float* factor = static_cast<float*>(buffers.workspace) +
                      static_cast<int64_t>(i) * padded();
      MakeFactors(launch, In(buffers, at.scale), In(buffers, at.variance),
                  at.epsilon, channels_.channels, factor);
      body.norm[i] = {In(buffers, at.mean), factor, In(buffers, at.bias)};
      aligned = aligned && Aligned({body.norm[i].mean, body.norm[i].factor,
                                    body.norm[i].bias});
    }
    Map<2>(launch, body, channels_.elements(), channels_.VectorFor(aligned));
  }

 private:
  int64_t padded() const { return CeilDiv(channels_.channels, 64) * 64; }

  Channels channels_;
  bool add_, relu_;
  std::vector<NormAt> norms_;
  int y_ = -1;
};

// Channels are the second dim, and what is read comes from outside.
bool Supports(const BoundOp& fusion) {
  const FusedOp fused(fusion);
  if (fusion.outputs()[0].rank() < 2) return false;
  for (const char* role : {"norm", "other_norm"}) {
    if (fused.Has(role) && NormAt(fused.Of(role)).x < 0) return false;
  }
  return true;
}

}  // namespace

void RegisterCudaNormElementwise(KernelRegistry& registry) {
  Candidate candidate = CudaCandidate(
      "channels", [](const BoundOp& op) { return NormElementwise(op); });
  candidate.supports = Supports;
  candidate.workspace_bytes = [](const BoundOp& op) {
    return NormElementwise(op).workspace_floats() *
           static_cast<int64_t>(sizeof(float));
  };
  registry.AddPattern("norm_elementwise",
                      {DType::kF32, DType::kF16, DType::kBF16},
                      {Layout::kRowMajor, Layout::kChannelsLast}, candidate);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
