// The patterns relu_grad_norm, relu_grad_norm_bits and relu_grad_bias in one
// pass over memory: g = relu_grad(relu, a + b), where b may be missing, and the
// sums over g for one norm or two that it is the gradient of, or for a bias.
// Each op's result is rounded to the tensors' dtype, as if it had been stored,
// and sums are added in the order of bn_grad_reduce and reduce_sum: the bits
// are the body's (but for a single channel). Channels are innermost.
#include "kernels/common/norm_fusions.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/norm_sums.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/relu_bits.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

struct GradData : NormSumsData {
  const void *a, *b;  // `b` is null if nothing is added
  const void* relu;   // what it made, or its bits
  void* g;            // null if nobody reads it
};

// What V channels of one row let through a relu: by what it made,
template <int V>
struct ReluResult {
  Raw out;

  HT_DEVICE void Load(const GradData& data, int64_t at) {
    out = LoadRaw<V>(data.dtype, data.relu, at);
  }
  HT_DEVICE void Mask(DType dtype, float (&g)[V]) const {
    float made[V];
    Unpack(dtype, out, made);
#pragma unroll
    for (int k = 0; k < V; ++k) g[k] = functors::ReluGradOp()(made[k], g[k]);
  }
};
// or by the bits of that.
template <int V>
struct ReluBits {
  unsigned bits;

  HT_DEVICE void Load(const GradData& data, int64_t at) {
    bits = unsigned{LoadAs<uint8_t>(data.relu, at / 8)} >> (at % 8);
  }
  HT_DEVICE void Mask(DType, float (&g)[V]) const {
#pragma unroll
    for (int k = 0; k < V; ++k) {
      g[k] = functors::ReluGradOfBit((bits >> k & 1) != 0, g[k]);
    }
  }
};

// V channels of one row.
template <int V, int kNorms, typename Relu>
struct GradRow {
  using Data = GradData;

  Raw a, b, x[AtLeastOne(kNorms)];
  Relu relu;

  HT_DEVICE void Load(const GradData& data, int64_t at) {
    a = LoadRaw<V>(data.dtype, data.a, at);
    if (data.b != nullptr) b = LoadRaw<V>(data.dtype, data.b, at);
    relu.Load(data, at);
#pragma unroll
    for (int j = 0; j < kNorms; ++j) {
      x[j] = LoadRaw<V>(data.dtype, data.x[j], at);
    }
  }

  // Stores g and returns it as it was stored.
  HT_DEVICE void MakeGrad(const GradData& data, int64_t at,
                          float (&g)[V]) const {
    Unpack(data.dtype, a, g);
    if (data.b != nullptr) {
      float more[V];
      Unpack(data.dtype, b, more);
#pragma unroll
      for (int k = 0; k < V; ++k) g[k] += more[k];
    }
    relu.Mask(data.dtype, g);
    const Raw rounded = Pack(data.dtype, g);
    if (data.g != nullptr) StoreRaw<V>(data.dtype, data.g, at, rounded);
    Unpack(data.dtype, rounded, g);
  }
};

class ReluGradSums {
 public:
  explicit ReluGradSums(const BoundOp& fusion)
      : at_(fusion), channels_(fusion.inputs()[at_.a]) {
    if (at_.bias >= 0) bias_dtype_ = fusion.outputs()[at_.bias].dtype;
  }

  int64_t workspace_floats() const {
    const int sums =
        at_.norms.empty() ? 1 : 2 * static_cast<int>(at_.norms.size());
    return channels_.sums.workspace_floats(sums);
  }

  void operator()(const Buffers& buffers, Launcher& launch) const {
    const GradData data = DataOf(buffers);
    float* partial = static_cast<float*>(buffers.workspace);
    if (at_.norms.empty()) {
      LaunchVector<0, ReluResult>(launch, data, partial);
    } else if (at_.norms.size() == 1) {
      LaunchRelu<1>(launch, data, partial);
    } else {
      LaunchRelu<2>(launch, data, partial);
    }
    if (at_.bias >= 0) {
      CombineSums<sums_internal::TwoSums, 1>(
          launch, channels_.sums, partial,
          StoreSum{bias_dtype_, buffers.outputs[at_.bias]});
    }
    for (const NormSumsAt& at : at_.norms) {
      const FinishGradSums finish{In(buffers, at.variance), at.epsilon,
                                  OutOrNull(buffers, at.scale_grad),
                                  OutOrNull(buffers, at.bias_grad)};
      CombineSums<sums_internal::TwoSums, 2>(launch, channels_.sums, partial,
                                             finish);
      partial += channels_.sums.workspace_floats(2);
    }
  }

 private:
  GradData DataOf(const Buffers& buffers) const {
    GradData data = {};
    data.dtype = channels_.dtype;
    data.a = buffers.inputs[at_.a];
    if (at_.b >= 0) data.b = buffers.inputs[at_.b];
    data.relu = buffers.inputs[at_.relu];
    if (at_.g >= 0) data.g = buffers.outputs[at_.g];
    for (size_t j = 0; j < at_.norms.size(); ++j) {
      data.x[j] = buffers.inputs[at_.norms[j].x];
      data.mean[j] = In(buffers, at_.norms[j].mean);
    }
    return data;
  }

  template <int kNorms>
  void LaunchRelu(Launcher& launch, const GradData& data,
                  float* partial) const {
    if (at_.bits) {
      LaunchVector<kNorms, ReluBits>(launch, data, partial);
    } else {
      LaunchVector<kNorms, ReluResult>(launch, data, partial);
    }
  }

  template <int kNorms, template <int> class Relu>
  void LaunchVector(Launcher& launch, const GradData& data,
                    float* partial) const {
    const bool aligned = Aligned({data.a, data.b, data.relu, data.g, data.x[0],
                                  data.x[1], data.mean[0], data.mean[1]});
    const int vector = channels_.VectorFor(aligned);
    if (vector == 8) {
      LaunchRows<8, kNorms, Relu<8>>(launch, data, partial);
    } else if (vector == 4) {
      LaunchRows<4, kNorms, Relu<4>>(launch, data, partial);
    } else {
      LaunchRows<1, kNorms, Relu<1>>(launch, data, partial);
    }
  }

  template <int V, int kNorms, typename Relu>
  void LaunchRows(Launcher& launch, const GradData& data,
                  float* partial) const {
    launch(NormSumsKernel<V, kNorms, GradRow<V, kNorms, Relu>>,
           ColumnBlocks(channels_.sums, V), kThreads, channels_.sums, data,
           partial);
  }

  ReluGradSumsAt at_;
  Channels channels_;
  DType bias_dtype_ = DType::kF32;
};

}  // namespace

void RegisterCudaReluGradNorm(KernelRegistry& registry) {
  Candidate candidate = CudaCandidate(
      "channels", [](const BoundOp& op) { return ReluGradSums(op); });
  candidate.supports = SupportsReluGradSums;
  candidate.workspace_bytes = [](const BoundOp& op) {
    return ReluGradSums(op).workspace_floats() *
           static_cast<int64_t>(sizeof(float));
  };
  for (const char* pattern :
       {"relu_grad_norm", "relu_grad_norm_bits", "relu_grad_bias"}) {
    registry.AddPattern(pattern, {DType::kF32, DType::kF16, DType::kBF16},
                        {Layout::kRowMajor, Layout::kChannelsLast}, candidate);
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
