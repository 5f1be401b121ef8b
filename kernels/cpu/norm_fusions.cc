// Batch norms fused with what is element-wise beside them, tile by tile, so
// that what is between two ops stays in the first-level cache. Each op's result
// is rounded to the tensors' dtype, as if it had been stored: the bits are the
// body's.
#include "kernels/common/norm_fusions.h"

#include "absl/types/span.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/relu_bits.h"
#include "kernels/functors/elementwise.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// norm_elementwise: relu(norm(x) + y), and its bits.
struct NormElementwiseKernel {
  NormElementwiseAt at;
  Channels channels;
  DType dtype;

  explicit NormElementwiseKernel(const BoundOp& fusion)
      : at(fusion),
        channels(fusion.outputs()[at.out]),
        dtype(fusion.outputs()[at.out].dtype) {}

  // A factor per channel and norm.
  static int64_t WorkspaceFloats(const BoundOp& fusion) {
    const NormElementwiseKernel kernel(fusion);
    return static_cast<int64_t>(kernel.at.norms.size()) *
           kernel.channels.channels();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    NormalizeMap maps[2] = {};
    float* factor = static_cast<float*>(buffers.workspace);
    for (size_t i = 0; i < at.norms.size(); ++i) {
      maps[i] =
          MakeNormalizeMap(buffers, at.norms[i], channels.channels(), factor);
      factor += channels.channels();
    }
    channels.ForTiles(stream.threads(), [&](const Channels::Tile& tile) {
      RunTile(buffers, maps, tile);
    });
  }

 private:
  void RunTile(const Buffers& buffers, const NormalizeMap (&maps)[2],
               const Channels::Tile& tile) const {
    alignas(64) float x_buffer[kConvertBlock], y_buffer[kConvertBlock];
    alignas(64) float out_buffer[kConvertBlock];
    const int64_t n = tile.elements();
    const float* x =
        LoadBlock(dtype, buffers.inputs[at.norms[0].x], tile.at, n, x_buffer);
    const float* y = nullptr;
    if (at.add) {
      y = LoadBlock(dtype, buffers.inputs[at.y], tile.at, n, y_buffer);
      if (at.norms.size() > 1) {
        Normalize(maps[1], y, y_buffer, tile);
        y = y_buffer;
      }
    }
    float* const out =
        OutputBlock(dtype, buffers.outputs[at.out], tile.at, out_buffer);
    Normalize(maps[0], x, out, tile);
    if (at.add) {
      ApplyBinary(functors::AddOp(), out, y, out, n);
      RoundTo(dtype, out, n);
    }
    if (at.relu) ApplyUnary(functors::ReluOp(), out, out, n);
    if (at.bits >= 0) {
      uint8_t* const bits = static_cast<uint8_t*>(buffers.outputs[at.bits]);
      PackReluBits(out, n, bits + tile.at / 8);
    }
    StoreBlock(dtype, out, buffers.outputs[at.out], tile.at, n);
  }

  void Normalize(const NormalizeMap& map, const float* from, float* to,
                 const Channels::Tile& tile) const {
    channels_internal::MapTile(from, from, to, tile.rows, tile.channel,
                               tile.channels, tile.inner, map);
    RoundTo(dtype, to, tile.elements());
  }
};

// relu_grad_norm: g = relu_grad(relu, a + b) and the sums over it, by what the
// relu made, by its bits, or by what it makes again of the norm's X, which is
// read for the sums.
struct ReluGradNormKernel {
  ReluGradSumsAt at;
  Channels channels;
  DType dtype;

  explicit ReluGradNormKernel(const BoundOp& fusion)
      : at(fusion),
        channels(fusion.inputs()[at.a]),
        dtype(fusion.inputs()[at.a].dtype) {}

  static int64_t WorkspaceFloats(const BoundOp& fusion) {
    const ReluGradNormKernel kernel(fusion);
    return static_cast<int64_t>(kernel.at.norms.size()) *
               kernel.channels.workspace_floats() +
           (kernel.at.recomputed ? kernel.channels.channels() : 0);
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    Channels::Summed summed[2];
    float* partial = static_cast<float*>(buffers.workspace);
    NormalizeMap again = {};
    if (at.recomputed) {
      again = MakeNormalizeMap(buffers, *at.recomputed, channels.channels(),
                               partial);
      partial += channels.channels();
    }
    for (size_t i = 0; i < at.norms.size(); ++i) {
      summed[i] = {buffers.inputs[at.norms[i].x], In(buffers, at.norms[i].mean),
                   partial};
      partial += channels.workspace_floats();
    }
    channels.Reduce<NormGradSums>(
        dtype, absl::MakeConstSpan(summed, at.norms.size()),
        [&](int64_t begin, int64_t n, float* buffer, const float* x) {
          return MakeGrad(buffers, again, x, begin, n, buffer);
        },
        stream.threads());
    for (size_t i = 0; i < at.norms.size(); ++i) {
      const NormSumsAt& norm = at.norms[i];
      float* const scale_grad = OutOrNull(buffers, norm.scale_grad);
      channels.CombineSums(summed[i].partial, scale_grad,
                           OutOrNull(buffers, norm.bias_grad));
      if (scale_grad == nullptr) continue;
      DivideByDeviation(In(buffers, norm.variance), norm.epsilon,
                        channels.channels(), scale_grad);
    }
  }

 private:
  static float* OutOrNull(const Buffers& buffers, int i) {
    return i < 0 ? nullptr : Out(buffers, i);
  }

  // Elements [begin, begin + n) of g, as they were stored; `x`: those of
  // norms[0].
  const float* MakeGrad(const Buffers& buffers, const NormalizeMap& again,
                        const float* x, int64_t begin, int64_t n,
                        float* buffer) const {
    alignas(64) float other[kConvertBlock];
    float* const g =
        at.g < 0 ? buffer
                 : OutputBlock(dtype, buffers.outputs[at.g], begin, buffer);
    const float* grad =
        LoadBlock(dtype, buffers.inputs[at.a], begin, n, buffer);
    if (at.b >= 0) {
      ApplyBinary(functors::AddOp(), grad,
                  LoadBlock(dtype, buffers.inputs[at.b], begin, n, other), g,
                  n);
      RoundTo(dtype, g, n);
      grad = g;
    }
    if (at.recomputed) {
      // Channels are innermost: rows of all of them, or of some.
      const int64_t c = std::min(n, channels.channels());
      NormRelu(again, dtype, x, /*stride=*/c, n / c,
               begin % channels.channels(), c, other);
      ApplyBinary(functors::ReluGradOp(), other, grad, g, n);
      if (at.g >= 0) StoreBlock(dtype, g, buffers.outputs[at.g], begin, n);
      return g;
    }
    const void* const relu = buffers.inputs[at.relu];
    if (at.bits) {
      ApplyReluBits(static_cast<const uint8_t*>(relu) + begin / 8, grad, g, n);
    } else {
      ApplyBinary(functors::ReluGradOp(),
                  LoadBlock(dtype, relu, begin, n, other), grad, g, n);
    }
    if (at.g >= 0) StoreBlock(dtype, g, buffers.outputs[at.g], begin, n);
    return g;
  }
};

template <typename Kernel>
Candidate MakeFused(bool (*supports)(const BoundOp&)) {
  Candidate candidate =
      MakeCandidate("channels", [](const BoundOp& op) { return Kernel(op); });
  candidate.supports = supports;
  candidate.workspace_bytes = [](const BoundOp& op) {
    return Kernel::WorkspaceFloats(op) * static_cast<int64_t>(sizeof(float));
  };
  return candidate;
}

}  // namespace

void NormRelu(const NormalizeMap& norm, DType dtype, const float* x,
              int64_t stride, int64_t rows, int64_t first, int64_t n,
              float* out) {
  const int64_t calls = stride == n ? 1 : rows;
  for (int64_t i = 0; i < calls; ++i) {
    const float* const from = x + i * stride;
    channels_internal::MapTile(from, from, out + i * n, rows / calls, first, n,
                               /*inner=*/1, norm);
  }
  RoundTo(dtype, out, rows * n);
  ApplyUnary(functors::ReluOp(), out, out, rows * n);
}

void RegisterCpuNormFusions(KernelRegistry& registry) {
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  const Layout layouts[] = {Layout::kRowMajor, Layout::kChannelsLast};
  const Candidate elementwise =
      MakeFused<NormElementwiseKernel>(SupportsNormElementwise);
  const Candidate relu_grad =
      MakeFused<ReluGradNormKernel>(SupportsReluGradSums);
  registry.AddPattern("norm_elementwise", dtypes, layouts, elementwise);
  registry.AddPattern("relu_grad_norm", dtypes, layouts, relu_grad);
  registry.AddPattern("recompute_relu_grad_norm", dtypes, layouts, relu_grad);
  // Of f32 making bits takes as long as reading them saves.
  const DType low[] = {DType::kF16, DType::kBF16};
  registry.AddPattern("norm_elementwise_bits", low, layouts, elementwise);
  registry.AddPattern("relu_grad_norm_bits", low, layouts, relu_grad);
}

}  // namespace kernels
}  // namespace halftone
