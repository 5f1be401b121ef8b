// Batch norms fused with maximum pooling of what they and their relus make, and
// the parts of their gradients with that of pooling, of channels-last images: a
// strip of a normal image, or a tile of its gradient, is in the caches and
// nowhere else. Each op's result is rounded to the tensors' dtype, as if it had
// been stored: the bits are the body's.
#include <algorithm>
#include <cstdint>

#include "absl/base/attributes.h"
#include "kernels/common/norm_fusions.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/pool_gather.h"
#include "kernels/cpu/pool_pixels.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace {

// relu of norm.
template <typename T>
struct NormalPixels {
  static constexpr bool kNegative = false;
  NormalizeMap map;

  template <typename Low>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Load(const T* x, int64_t channel,
                                         float* lanes) const {
    Low::Load(x, lanes);
    NormalReluLanes<Low, T>(map, channel, lanes);
  }
  float At(const T* x, int64_t channel) const {
    return NormalRelu<T>(map, channel, static_cast<float>(*x));
  }
};
// What those were stored as.
struct StoredNormalPixels : StoredPixels {
  static constexpr bool kNegative = false;
};

// norm_max_pool: strips of lines of windows. Pixels that one window holds at
// most are normalised as they are read; others once before.
template <typename T>
class NormMaxPool {
 public:
  explicit NormMaxPool(const BoundOp& fusion) : at_(fusion), most_(at_.shape) {
    const PoolDim &h = at_.shape.h, &w = at_.shape.w;
    apart_ = h.kernel <= h.stride && w.kernel <= w.stride;
    const int64_t bytes = h.kernel > h.stride ? kFarBytes : kNearBytes;
    const int64_t rows = bytes / std::max<int64_t>(1, RowBytes());
    lines_ = std::clamp<int64_t>((rows - h.kernel) / h.stride + 1, 1,
                                 std::max<int64_t>(1, h.out));
    strips_ = (h.out + lines_ - 1) / lines_;
  }

  // A factor per channel, and a strip for each thread.
  int64_t WorkspaceFloats(int threads) const {
    return at_.shape.channels + std::max(1, threads) * StripFloats();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    float* const factor = static_cast<float*>(buffers.workspace);
    const NormalizeMap map =
        MakeNormalizeMap(buffers, at_.norm, at_.shape.channels, factor);
    ForEachWithScratch(stream.threads(), at_.shape.planes * strips_,
                       lines_ * at_.shape.h.kernel * at_.shape.InRow(),
                       factor + at_.shape.channels, StripFloats(),
                       [&](int64_t strip, float* scratch) {
                         RunStrip(buffers, map, strip,
                                  reinterpret_cast<T*>(scratch));
                       });
  }

 private:
  // Of a strip: of the first-level cache, and of the second-level one where two
  // strips have windows of one row: it is made twice, and a strip is to have
  // many.
  static constexpr int64_t kNearBytes = 16 << 10, kFarBytes = 256 << 10;

  int64_t RowBytes() const { return at_.shape.InRow() * sizeof(T); }
  int64_t StripFloats() const {
    if (apart_) return 0;
    const PoolDim& h = at_.shape.h;
    const int64_t rows =
        std::min(h.in, (lines_ - 1) * h.stride + h.kernel) * RowBytes();
    return (rows + static_cast<int64_t>(sizeof(float)) - 1) /
           static_cast<int64_t>(sizeof(float));
  }

  void RunStrip(const Buffers& buffers, const NormalizeMap& map, int64_t strip,
                T* scratch) const {
    const PoolShape& shape = at_.shape;
    const int64_t plane = strip / strips_, first = strip % strips_ * lines_;
    const int64_t end = std::min(shape.h.out, first + lines_);
    const Range rows = {shape.h.Window(first).begin,
                        shape.h.Window(end - 1).end};
    const T* x = static_cast<const T*>(buffers.inputs[at_.norm.x]) +
                 plane * shape.h.in * shape.InRow();
    const NormalPixels<T> normal = {map};
    if (!apart_ && rows.size() > 0) {
      const int64_t begin = rows.begin * shape.InRow();
      Normalize(normal, x + begin, rows.size() * shape.w.in, scratch);
      x = scratch - begin;
    }
    const int64_t windows = plane * shape.h.out * shape.OutRow();
    T* const out = static_cast<T*>(buffers.outputs[at_.out]) + windows;
    auto* const argmax =
        static_cast<uint8_t*>(buffers.outputs[at_.argmax]) + windows;
    for (int64_t oh = first; oh < end; ++oh) {
      const int64_t line = oh * shape.OutRow();
      if (apart_) {
        most_.Line(oh, x, out + line, argmax + line, normal);
      } else {
        most_.Line(oh, x, out + line, argmax + line, StoredNormalPixels());
      }
    }
  }

  void Normalize(const NormalPixels<T>& normal, const T* x, int64_t pixels,
                 T* to) const {
    const int64_t channels = at_.shape.channels;
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      const int64_t whole = channels / Low::kSize * Low::kSize;
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t at = p * channels;
        for (int64_t c = 0; c < whole; c += Low::kSize) {
          float lanes[Low::kSize];
          normal.template Load<Low>(x + at + c, c, lanes);
          Low::StoreExact(lanes, to + at + c);
        }
        for (int64_t c = whole; c < channels; ++c) {
          to[at + c] = static_cast<T>(normal.At(x + at + c, c));
        }
      }
    });
  }

  NormMaxPoolAt at_;
  PixelsMost<T> most_;
  bool apart_ = false;
  int64_t lines_, strips_;  // of a strip; of a plane
};

// The gradient of an image of which maxima were pooled.
class PooledGrad {
 public:
  explicit PooledGrad(const BoundOp& fusion)
      : at_(fusion), gather_(at_.shape) {}

  // Elements [at, at + n): some pixels, or some channels of one.
  template <typename T>
  void Fill(const Buffers& buffers, int64_t at, int64_t n, T* to) const {
    const PoolShape& shape = at_.shape;
    const int64_t channels = std::min(n, shape.channels);
    const Range some = {at % shape.channels, at % shape.channels + channels};
    const auto* grads = static_cast<const T*>(buffers.inputs[at_.grad]);
    const auto* argmax =
        static_cast<const uint8_t*>(buffers.inputs[at_.argmax]);
    int64_t row = at / shape.InRow(), x = at % shape.InRow() / shape.channels;
    for (int64_t left = n / channels; left > 0; ++row, x = 0) {
      const Range pixels = {x, std::min(shape.w.in, x + left)};
      const int64_t windows = row / shape.h.in * shape.h.out * shape.OutRow();
      ForIsa([&, to](auto isa) {
        gather_.Pixels<decltype(isa)::value>(row % shape.h.in, pixels, some,
                                             grads + windows, argmax + windows,
                                             to);
      });
      to += pixels.size() * channels;
      left -= pixels.size();
    }
  }

 private:
  PooledGradAt at_;
  PixelsGather gather_;
};

// max_pool_grad_norm: the sums over it.
class MaxPoolGradNorm {
 public:
  explicit MaxPoolGradNorm(const BoundOp& fusion)
      : grad_(fusion),
        sums_(FusedOp(fusion).Of("norm")),
        channels_(fusion.inputs()[sums_.x]),
        dtype_(fusion.inputs()[sums_.x].dtype) {}

  int64_t WorkspaceFloats(int) const { return channels_.workspace_floats(); }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    float* const partial = static_cast<float*>(buffers.workspace);
    const Channels::Summed summed[] = {
        {buffers.inputs[sums_.x], In(buffers, sums_.mean), partial}};
    channels_.Reduce<NormGradSums>(dtype_, summed, Grad{*this, buffers},
                                   stream.threads());
    FinishNormSums(buffers, sums_, channels_, partial, stream.threads());
  }

 private:
  // For Channels::Reduce.
  struct Grad {
    static constexpr bool kTakesBlocks = true, kInOrder = false;
    const MaxPoolGradNorm& kernel;
    const Buffers& buffers;

    const float* operator()(int64_t at, int64_t n, float* buffer,
                            const float*) const {
      DispatchType(FloatTypes(), kernel.dtype_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        alignas(64) T made[kConvertBlock];
        kernel.grad_.Fill(buffers, at, n, made);
        for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<float>(made[i]);
      });
      return buffer;
    }

    // Of a tile that begins at `first`.
    template <typename T>
    struct TileLanes {
      static constexpr bool kFetches = false;
      const T* made;
      int64_t first;

      template <typename Some>
      void At(int64_t at, int64_t, const typename Some::Lanes&,
              typename Some::Lanes& to) const {
        Some::Load(made + (at - first), to);
      }
    };
    template <typename T>
    TileLanes<T> Lanes(const Channels::Tile& tile, T* room) const {
      kernel.grad_.Fill(buffers, tile.at, tile.elements(), room);
      return {room, tile.at};
    }
  };

  PooledGrad grad_;
  NormSumsAt sums_;
  Channels channels_;
  DType dtype_;
};

// max_pool_grad_apply: the gradient of what was normalised.
class MaxPoolGradApply {
 public:
  explicit MaxPoolGradApply(const BoundOp& fusion)
      : grad_(fusion),
        norm_(FusedOp(fusion).Of("norm")),
        channels_(fusion.inputs()[norm_.x]),
        dtype_(fusion.inputs()[norm_.x].dtype) {}

  int64_t WorkspaceFloats(int) const { return 0; }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const GradApplyMap map = {In(buffers, norm_.mean), In(buffers, norm_.a),
                              In(buffers, norm_.b), In(buffers, norm_.c0)};
    const StreamedOutput output = channels_.Output(buffers, 0, dtype_);
    channels_.ForTiles(stream.threads(), [&](const Channels::Tile& tile) {
      DispatchType(FloatTypes(), dtype_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        alignas(64) T grad[kConvertBlock];
        grad_.Fill(buffers, tile.at, tile.elements(), grad);
        const auto* x = static_cast<const T*>(buffers.inputs[norm_.x]);
        Channels::Tile here = tile;
        here.at = 0;
        output.WritePart(tile.at, tile.elements(), [&](void* to) {
          channels_.MapTile(dtype_, x + tile.at, grad, to, here, map);
        });
      });
    });
  }

 private:
  PooledGrad grad_;
  NormApplyAt norm_;
  Channels channels_;
  DType dtype_;
};

template <typename T>
void RegisterForward(KernelRegistry& registry) {
  registry.AddPattern(
      "norm_max_pool", {DTypeOf<T>()}, {Layout::kChannelsLast},
      NormFusionCandidate<NormMaxPool<T>>("pixels", SupportsNormMaxPool));
}

}  // namespace

void RegisterCpuNormMaxPool(KernelRegistry& registry) {
  RegisterForward<float>(registry);
  RegisterForward<half>(registry);
  RegisterForward<bfloat16>(registry);
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  registry.AddPattern(
      "max_pool_grad_norm", dtypes, {Layout::kChannelsLast},
      NormFusionCandidate<MaxPoolGradNorm>("pixels", SupportsMaxPoolGradNorm));
  registry.AddPattern("max_pool_grad_apply", dtypes, {Layout::kChannelsLast},
                      NormFusionCandidate<MaxPoolGradApply>(
                          "pixels", SupportsMaxPoolGradApply));
}

}  // namespace kernels
}  // namespace halftone
