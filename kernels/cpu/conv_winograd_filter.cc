// The gradient of a 3x3 or 5x5 filter for channels-last images, by winograd.h:
// for each point, transformed OutputGrad' [filters, tiles] times transformed
// Input [tiles, channels]. A thread sums over a part of the tiles, for some of
// the channels, or both; the parts are cut by the shape alone, and their sums
// are added in order before they are transformed back. Where Input is
// relu(norm(X)), that is made while it is transformed.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "graph/base/dtype.h"
#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/conv_packed.h"
#include "kernels/cpu/conv_winograd.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/small_product.h"
#include "kernels/cpu/wide_vector.h"
#include "kernels/cpu/winograd.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace {

template <typename W>
class WinogradGradFilter {
 public:
  explicit WinogradGradFilter(const BoundOp& op)
      : conv_(GradFilterConvOf(op)),
        tiles_(WinogradTiles::Of<W>(conv_.shape.samples,
                                    DimOf(conv_.shape.volume[1]),
                                    DimOf(conv_.shape.volume[2]))) {
    if (op.type() == "fusion") norm_.emplace(FusedOp(op).Of("norm"));
    parts_ = PartsOf(tiles_.count());
    // The longer, the fewer times sums are read and written.
    chunk_ = PartSums() > kNearSums ? 2 * kTiles : kTiles;
    // Caches have few places for what lies a power of two apart.
    panel_stride_ = chunk_ * kPanel + kPanel;
    made_row_ = WinogradRow(filters());
  }

  const WinogradTiles& tiles() const { return tiles_; }

  int64_t WorkspaceFloats(int threads) const {
    return parts_ * PartSums() + FactorFloats() +
           std::max(1, threads) * TaskFloats(Blocks(threads));
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int threads = stream.threads();
    Run run;
    run.image = RowsOf(conv_.image_desc, buffers.inputs[conv_.image]);
    run.gradient = RowsOf(conv_.result_desc, buffers.inputs[conv_.result]);
    run.sums = static_cast<float*>(buffers.workspace);
    float* const factor = run.sums + parts_ * PartSums();
    NormalizeMap norm;
    if (norm_) {
      norm = MakeNormalizeMap(buffers, *norm_, channels(), factor);
      run.image.norm = &norm;
    }
    const int64_t blocks = Blocks(threads);
    ForTasksWithScratch(
        threads, parts_ * blocks, 1, factor + FactorFloats(),
        TaskFloats(blocks), [&](int64_t begin, int64_t end, float* scratch) {
          for (int64_t i = begin; i < end; ++i) {
            RunTask(i / blocks, PanelsOfBlock(i % blocks, blocks), scratch,
                    run);
          }
        });
    Store(run.sums, threads, buffers.outputs[0]);
  }

 private:
  struct Run {
    PixelRows image, gradient;
    float* sums;
  };

  static WinogradTiles::Dim DimOf(const ConvDim& dim) {
    return {dim.result, dim.image, dim.before};
  }
  static PixelRows RowsOf(const TensorDesc& desc, const void* data) {
    return {desc.dtype, data, desc.dims[1]};
  }
  int64_t channels() const { return conv_.shape.channels; }
  int64_t filters() const { return conv_.shape.filters; }
  int64_t panels() const { return channels() / kPanel; }
  int64_t PointSums() const { return filters() * channels(); }
  int64_t PartSums() const { return W::kPoints * PointSums(); }
  int64_t FactorFloats() const { return norm_ ? channels() : 0; }

  // Of the tiles: as many as threads that many machines have, while what they
  // sum lies in caches and they are long.
  int64_t PartsOf(int64_t tiles) const {
    constexpr int64_t kMostParts = 16;
    int64_t parts = kMostParts;
    while (parts > 1 &&
           (parts * PartSums() > kNearSums || parts * 2 * kTiles > tiles)) {
      parts /= 2;
    }
    return parts;
  }
  // Of the channels, each with all of OutputGrad: as few as leave no thread
  // waiting for long.
  int64_t Blocks(int threads) const {
    return EvenBlocks(parts_, panels(), threads);
  }
  WinogradRange PanelsOfBlock(int64_t block, int64_t blocks) const {
    return {panels() * block / blocks, panels() * (block + 1) / blocks};
  }
  int64_t SeenFloats(int64_t blocks) const {
    return CeilDiv(panels(), blocks) * panel_stride_;
  }
  int64_t MadeFloats() const { return chunk_ * made_row_ + kPanel; }
  int64_t TaskFloats(int64_t blocks) const {
    return W::kPoints * (SeenFloats(blocks) + MadeFloats());
  }

  void RunTask(int64_t part, WinogradRange panels, float* scratch,
               const Run& run) const {
    const int64_t first = tiles_.count() * part / parts_;
    const int64_t end = tiles_.count() * (part + 1) / parts_;
    const WinogradPoints seen = {scratch, panels.size() * panel_stride_, kPanel,
                                 panel_stride_};
    const WinogradPoints made = {
        scratch + W::kPoints * panels.size() * panel_stride_, MadeFloats(),
        made_row_, kPanel};
    for (int64_t begin = first; begin < end; begin += chunk_) {
      const WinogradOrder order(tiles_, {begin, std::min(end, begin + chunk_)});
      TransformSeen<W>(tiles_, run.image, order,
                       {panels.begin * kPanel, panels.end * kPanel}, seen);
      TransformMade<W>(tiles_, run.gradient, order, {0, filters()}, made);
      Multiply(seen, made, order, panels, begin > first,
               run.sums + part * PartSums());
    }
  }

  // A panel of channels stays in the first-level cache for all filters.
  void Multiply(const WinogradPoints& seen, const WinogradPoints& made,
                const WinogradOrder& order, WinogradRange panels, bool add,
                float* sums) const {
    const int64_t together = PanelsAtOnce();
    for (int64_t i = 0; i < W::kPoints; ++i) {
      const WinogradRange of = W::TilesWith(order, i);
      for (int64_t p = panels.begin; p < panels.end; p += together) {
        const Matrix32 left = {made.At(of.begin, 0) + i * made.point, made.row};
        kernels::Multiply(
            filters(), std::min(together, panels.end - p), of.size(),
            left.Transposed(),
            {seen.At(of.begin, (p - panels.begin) * kPanel) + i * seen.point,
             seen.panel},
            add, sums + i * PointSums() + p * kPanel, channels());
      }
    }
  }

  // The sums of the parts, in order, transformed.
  void Store(float* sums, int threads, void* to) const {
    DispatchType(FloatTypes(), conv_.filter_desc.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* const result = static_cast<T*>(to);
      ParallelFor(
          threads, filters(),
          std::max<int64_t>(1, kMapGrain / (channels() * parts_ * W::kPoints)),
          [&](int64_t begin, int64_t end) {
            for (int64_t f = begin; f < end; ++f) {
              StoreFilter<T>(sums + f * channels(),
                             result + f * W::kTaps * channels());
            }
          });
    });
  }
  template <typename T>
  void StoreFilter(const float* sums, T* to) const {
    const int64_t n = channels(), point = PointSums(), part = PartSums();
    const int64_t parts = parts_;
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      using V = WideVector<Low::kSize>;
      for (int64_t c = 0; c < n; c += Low::kSize) {
        WinogradTransform<typename W::Down::FilterGradLine,
                          typename W::Across::FilterGradLine, V>(
            [=](int y, int x, V* sum) {
              const float* const at = sums + W::PointOf(y, x) * point + c;
              *sum = *reinterpret_cast<const V*>(at);
              for (int64_t p = 1; p < parts; ++p) {
                *sum += *reinterpret_cast<const V*>(at + p * part);
              }
            },
            [=](int y, int x, const V& tap) {
              Low::Store(reinterpret_cast<const float*>(&tap),
                         to + (y * W::Down::kTap + x) * n + c);
            });
      }
    });
  }

  // Tiles that are multiplied together.
  static constexpr int64_t kTiles = 64;
  static constexpr int64_t kNearSums = 512 << 10;

  ConvOp conv_;
  std::optional<NormAt> norm_;
  WinogradTiles tiles_;  // of OutputGrad
  int64_t parts_ = 1, chunk_ = 0;
  int64_t panel_stride_ = 0, made_row_ = 0;
};

}  // namespace

Candidate WinogradGradFilterCandidate() {
  Candidate candidate = WinogradCandidate<WinogradGradFilter>(GradFilterConvOf);
  candidate.supports = [supported = candidate.supports](const BoundOp& op) {
    const ConvOp conv = GradFilterConvOf(op);
    return conv.image >= 0 && conv.result >= 0 && supported(op);
  };
  return candidate;
}

}  // namespace kernels
}  // namespace halftone
