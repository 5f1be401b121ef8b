// Batch norms fused with what is element-wise beside them: what is between two
// ops stays in registers where channels are innermost, else, tile by tile, in
// the first-level cache. Each op's result is rounded to the tensors' dtype, as
// if it had been stored: the bits are the body's.
#include "kernels/common/norm_fusions.h"

#include <cstring>

#include "absl/types/span.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/relu_bits.h"
#include "kernels/functors/elementwise.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// sum += x, rounded, of a LowVectors.
template <typename Some, typename T>
void AddVectors(const typename Some::Lanes& x, typename Some::Lanes& sum) {
#pragma GCC unroll 2
  for (int v = 0; v < Some::kVectors; ++v) {
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
    for (int k = 0; k < Some::kSize; ++k) sum[v][k] += x[v][k];
  }
  Some::Round(sum, T());
}

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
  int64_t WorkspaceFloats(int) const {
    return static_cast<int64_t>(at.norms.size()) * channels.channels();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    NormalizeMap maps[2] = {};
    float* factor = static_cast<float*>(buffers.workspace);
    for (size_t i = 0; i < at.norms.size(); ++i) {
      maps[i] =
          MakeNormalizeMap(buffers, at.norms[i], channels.channels(), factor);
      factor += channels.channels();
    }
    const StreamedOutput output = channels.Output(buffers, at.out, dtype);
    channels.ForTiles(stream.threads(), [&](const Channels::Tile& tile) {
      output.WritePart(tile.at, tile.elements(), [&](void* to) {
        if (!tile.IsLanes()) return RunTile(buffers, maps, tile, to);
        DispatchType(FloatTypes(), dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          RunLanes(buffers, maps, tile, static_cast<T*>(to));
        });
      });
    });
  }

 private:
  // `out`, `to`: where the tile's elements are made.
  template <typename T>
  void RunLanes(const Buffers& buffers, const NormalizeMap (&maps)[2],
                const Channels::Tile& tile, T* out) const {
    const T* const x =
        static_cast<const T*>(buffers.inputs[at.norms[0].x]) + tile.at;
    const T* const y =
        at.add ? static_cast<const T*>(buffers.inputs[at.y]) + tile.at
               : nullptr;
    uint8_t* const bits =
        at.bits < 0
            ? nullptr
            : static_cast<uint8_t*>(buffers.outputs[at.bits]) + tile.at / 8;
    const bool adds_norm = at.norms.size() > 1, relu = at.relu;
    const NormalizeMap norm = maps[0].From(tile.channel);
    const NormalizeMap y_norm = adds_norm ? maps[1].From(tile.channel) : norm;
    ForIsaOfCopy([=](auto isa) {
      constexpr Isa kIsa = decltype(isa)::value;
      channels_internal::ForVectors<kIsa, T>(
          tile.rows, tile.channels, [=](auto some, int64_t i, int64_t c) {
            using Some = decltype(some);
            using Lanes = typename Some::Lanes;
            HeldVectors<Some::kSize, Some::kVectors> made, other;
            Lanes x_lanes;
            Some::Load(x + i, x_lanes);
            NormalizeVectors<Some, T>(norm, c, x_lanes);
            made.Take(x_lanes);
            if (y != nullptr) {
              Lanes y_lanes;
              Some::Load(y + i, y_lanes);
              other.Take(y_lanes);
              if (adds_norm) {
                Lanes lanes;
                other.Give(lanes);
                NormalizeVectors<Some, T>(y_norm, c, lanes);
                other.Take(lanes);
              }
              Lanes lanes, sum;
              other.Give(lanes);
              made.Give(sum);
              AddVectors<Some, T>(lanes, sum);
              made.Take(sum);
            }
            if (relu) {
              Lanes sum;
              made.Give(sum);
#pragma GCC unroll 2
              for (int v = 0; v < Some::kVectors; ++v) {
                ReluOfLanes<typename Some::Low>(sum[v]);
              }
              made.Take(sum);
            }
            Lanes sum;
            made.Give(sum);
            if (bits != nullptr) {
              ReluMasks<Some> passes;
              passes.Make(sum);
              passes.Store(bits + i / 8);
            }
            Some::StoreExact(sum, out + i);
          });
    });
  }

  void RunTile(const Buffers& buffers, const NormalizeMap (&maps)[2],
               const Channels::Tile& tile, void* to) const {
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
    float* const out = OutputBlock(dtype, to, 0, out_buffer);
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
    StoreBlock(dtype, out, to, 0, n);
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

  int64_t WorkspaceFloats(int) const {
    return static_cast<int64_t>(at.norms.size()) * channels.workspace_floats() +
           (at.recomputed ? channels.channels() : 0);
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
    const Grad grad = {*this, buffers, again};
    channels.Reduce<NormGradSums>(dtype,
                                  absl::MakeConstSpan(summed, at.norms.size()),
                                  grad, stream.threads());
    for (size_t i = 0; i < at.norms.size(); ++i) {
      FinishNormSums(buffers, at.norms[i], channels, summed[i].partial,
                     stream.threads());
    }
  }

 private:
  // The g that is made, for Channels::Reduce.
  struct Grad {
    static constexpr bool kTakesBlocks = false, kInOrder = true;
    const ReluGradNormKernel& kernel;
    const Buffers& buffers;
    NormalizeMap again;

    const float* operator()(int64_t begin, int64_t n, float* buffer,
                            const float* x) const {
      return kernel.MakeGrad(buffers, again, x, begin, n, buffer);
    }

    template <typename T>
    struct GradLanes {
      static constexpr bool kFetches = false;
      const T *a, *b;  // b null: nothing is added
      // What the relu made, or its bits; neither: it is made again.
      const T* relu = nullptr;
      const uint8_t* bits = nullptr;
      T* g = nullptr;
      NormalizeMap again = {};

      template <typename Some>
      ABSL_ATTRIBUTE_ALWAYS_INLINE void At(int64_t at, int64_t channel,
                                           const typename Some::Lanes& x,
                                           typename Some::Lanes& to) const {
        using Lanes = typename Some::Lanes;
        HeldVectors<Some::kSize, Some::kVectors> grad;
        Lanes a_lanes;
        Some::Load(a + at, a_lanes);
        grad.Take(a_lanes);
        if (b != nullptr) {
          Lanes b_lanes, sum;
          Some::Load(b + at, b_lanes);
          grad.Give(sum);
          AddVectors<Some, T>(b_lanes, sum);
          grad.Take(sum);
        }
        ReluMasks<Some> passes;
        if (bits != nullptr) {
          passes.Load(bits + at / 8);
        } else if (relu != nullptr) {
          Lanes made;
          Some::Load(relu + at, made);
          passes.Make(made);
        } else {
          Lanes made;
          Some::Copy(x, made);
          NormalizeVectors<Some, T>(again, channel, made);
          passes.Make(made);
        }
        grad.Give(to);
        passes.Apply(to);
        if (g != nullptr) Some::StoreExact(to, g + at);
      }
    };
    template <typename T>
    GradLanes<T> Lanes(const Channels::Tile&, T*) const {
      const ReluGradSumsAt& at = kernel.at;
      const auto input = [&](int i) {
        return i < 0 ? nullptr : static_cast<const T*>(buffers.inputs[i]);
      };
      GradLanes<T> lanes = {input(at.a), input(at.b)};
      if (at.bits) {
        lanes.bits = static_cast<const uint8_t*>(buffers.inputs[at.relu]);
      } else if (!at.recomputed) {
        lanes.relu = input(at.relu);
      }
      if (at.g >= 0) lanes.g = static_cast<T*>(buffers.outputs[at.g]);
      lanes.again = again;
      return lanes;
    }
  };

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
      channels_internal::MapTile(x, x, other, n / c,
                                 begin % channels.channels(), c, /*inner=*/1,
                                 again);
      RoundTo(dtype, other, n);
      ApplyUnary(functors::ReluOp(), other, other, n);
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

// norm_grad_apply_two: a tile of y_grad is near when the second norm reads it.
struct NormGradApplyTwoKernel {
  NormGradApplyTwoAt at;
  Channels channels;
  DType dtype;

  explicit NormGradApplyTwoKernel(const BoundOp& fusion)
      : at(fusion),
        channels(fusion.inputs()[at.norms[0].x]),
        dtype(fusion.inputs()[at.norms[0].x].dtype) {}

  int64_t WorkspaceFloats(int) const { return 0; }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const StreamedOutput outputs[] = {
        channels.Output(buffers, at.norms[0].x_grad, dtype),
        channels.Output(buffers, at.norms[1].x_grad, dtype)};
    channels.ForTiles(stream.threads(), [&](const Channels::Tile& tile) {
      for (int i = 0; i < 2; ++i) {
        const NormApplyAt& norm = at.norms[i];
        const GradApplyMap map = {In(buffers, norm.mean), In(buffers, norm.a),
                                  In(buffers, norm.b), In(buffers, norm.c0)};
        outputs[i].WritePart(tile.at, tile.elements(), [&](void* to) {
          channels.MapTile(dtype, buffers.inputs[norm.x],
                           buffers.inputs[norm.y_grad], to, tile, map);
        });
      }
    });
  }
};

}  // namespace

void RegisterCpuNormFusions(KernelRegistry& registry) {
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  const Layout layouts[] = {Layout::kRowMajor, Layout::kChannelsLast};
  const Candidate elementwise = NormFusionCandidate<NormElementwiseKernel>(
      "channels", SupportsNormElementwise);
  const Candidate relu_grad =
      NormFusionCandidate<ReluGradNormKernel>("channels", SupportsReluGradSums);
  registry.AddPattern("norm_elementwise", dtypes, layouts, elementwise);
  registry.AddPattern("norm_grad_apply_two", dtypes, layouts,
                      NormFusionCandidate<NormGradApplyTwoKernel>(
                          "channels", SupportsNormGradApplyTwo));
  registry.AddPattern("relu_grad_norm", dtypes, layouts, relu_grad);
  registry.AddPattern("recompute_relu_grad_norm", dtypes, layouts, relu_grad);
  // Of f32 making bits takes as long as reading them saves.
  const DType low[] = {DType::kF16, DType::kBF16};
  registry.AddPattern("norm_elementwise_bits", low, layouts, elementwise);
  registry.AddPattern("relu_grad_norm_bits", low, layouts, relu_grad);
}

}  // namespace kernels
}  // namespace halftone
