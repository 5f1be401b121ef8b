// The pattern norm_elementwise: relu(norm(x) + y) in one pass, where y may be
// a norm, too, and sum and relu may be missing; and with one bit per element
// beside it. Each op's result is rounded to the tensors' dtype, as if it had
// been stored: the bits are the body's.
#include "kernels/common/norm_fusions.h"
#include "kernels/cuda/norm.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/relu_bits.h"

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
  // Returns the bits of relu_bits.
  template <int V>
  HT_DEVICE unsigned Finish(int64_t i, const Loaded<V>& loaded) const {
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
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < V; ++k) {
      bits |= unsigned{functors::PassesRelu(a[k])} << k;
    }
    return bits;
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

// Eight elements a thread, in vectors of kVector, and their byte.
template <int kVector>
struct NormBitsBody {
  NormBody norm;
  uint8_t* bits;

  // There are no tails of fewer than eight: V of 1 is never run.
  template <int V>
  struct Loaded {
    typename NormBody::template Loaded<kVector> parts[8 / kVector];
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
#pragma unroll
    for (int k = 0; k < 8; k += kVector) {
      norm.Load<kVector>(i + k, loaded.parts[k / kVector]);
    }
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    unsigned byte = 0;
#pragma unroll
    for (int k = 0; k < 8; k += kVector) {
      byte |= norm.Finish<kVector>(i + k, loaded.parts[k / kVector]) << k;
    }
    bits[i / 8] = static_cast<uint8_t>(byte);
  }
};

class NormElementwise {
 public:
  explicit NormElementwise(const BoundOp& fusion)
      : at_(fusion), channels_(fusion.outputs()[at_.out]) {}

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
    body.out = buffers.outputs[at_.out];
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
    const int vector = channels_.VectorFor(aligned);
    if (at_.bits < 0) {
      Map<2>(launch, body, channels_.elements(), vector);
    } else if (vector == 8) {
      WithBits<8>(buffers, launch, body);
    } else if (vector == 4) {
      WithBits<4>(buffers, launch, body);
    } else {
      WithBits<1>(buffers, launch, body);
    }
  }

 private:
  template <int kVector>
  void WithBits(const Buffers& buffers, Launcher& launch,
                const NormBody& norm) const {
    const NormBitsBody<kVector> body{
        norm, static_cast<uint8_t*>(buffers.outputs[at_.bits])};
    LaunchMap<8, kVector == 8 ? 2 : 1>(launch, body, channels_.elements());
  }
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
  for (const char* pattern : {"norm_elementwise", "norm_elementwise_bits"}) {
    registry.AddPattern(pattern, {DType::kF32, DType::kF16, DType::kBF16},
                        {Layout::kRowMajor, Layout::kChannelsLast}, candidate);
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
