// The pattern norm_elementwise: relu(norm(x) + y) in one pass, where y may be
// a norm, too, and sum and relu may be missing. Each op's result is rounded to
// the tensors' dtype, as if it had been stored: the bits are the body's.
#include "kernels/common/norm_fusions.h"
#include "kernels/cuda/norm.h"
#include "kernels/functors/elementwise.h"

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

class NormElementwise {
 public:
  explicit NormElementwise(const BoundOp& fusion)
      : at_(fusion), channels_(fusion.outputs()[0]) {}

  // A factor per channel and norm.
  int64_t workspace_floats() const {
    return static_cast<int64_t>(at_.norms.size()) * padded();
  }

  void operator()(const Buffers& buffers, Launcher& launch) const {
    NormBody body = {};
    body.dtype = channels_.dtype;
    body.add = at_.add;
    body.relu = at_.relu;
    body.neighbours = channels_.inner == 1;
    body.inner = Divider(channels_.inner);
    body.channels = Divider(channels_.channels > 0 ? channels_.channels : 1);
    body.x = buffers.inputs[at_.norms[0].x];
    if (at_.add) body.y = buffers.inputs[at_.y];
    body.out = buffers.outputs[0];
    bool aligned = Aligned({body.x, body.y, body.out});
    for (size_t i = 0; i < at_.norms.size(); ++i) {
      const NormAt& norm = at_.norms[i];
      float* factor = static_cast<float*>(buffers.workspace) +
                      static_cast<int64_t>(i) * padded();
      MakeFactors(launch, In(buffers, norm.scale), In(buffers, norm.variance),
                  norm.epsilon, channels_.channels, factor);
      body.norm[i] = {In(buffers, norm.mean), factor, In(buffers, norm.bias)};
      aligned = aligned && Aligned({body.norm[i].mean, body.norm[i].factor,
                                    body.norm[i].bias});
    }
    Map<2>(launch, body, channels_.elements(), channels_.VectorFor(aligned));
  }

 private:
  int64_t padded() const { return CeilDiv(channels_.channels, 64) * 64; }

  NormElementwiseAt at_;
  Channels channels_;
};

}  // namespace

void RegisterCudaNormElementwise(KernelRegistry& registry) {
  Candidate candidate = CudaCandidate(
      "channels", [](const BoundOp& op) { return NormElementwise(op); });
  candidate.supports = SupportsNormElementwise;
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
