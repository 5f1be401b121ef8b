// 3x3 and 5x5 convolutions and the gradients of their inputs for channels-last
// images, by winograd.h. Some tiles at a time are transformed, multiplied and
// transformed back while they are near: what they see lies in the second-level
// cache, and the transformed filter passes by, a few panels for all points.
#include "kernels/cpu/conv_winograd.h"

#include <algorithm>
#include <cstdint>

#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/conv_packed.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/onednn.h"
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
class WinogradConv {
 public:
  explicit WinogradConv(const BoundOp& op)
      : conv_(ConvOf(op)),
        relu_(op.type() == "fusion"),
        forward_(conv_.computed == ConvResult::kResult),
        source_(forward_ ? conv_.image_desc : conv_.result_desc),
        result_(forward_ ? conv_.result_desc : conv_.image_desc),
        depth_(forward_ ? conv_.shape.channels : conv_.shape.filters),
        columns_(forward_ ? conv_.shape.filters : conv_.shape.channels),
        tiles_(WinogradTiles::Of<W>(conv_.shape.samples,
                                    DimOf(conv_.shape.volume[1]),
                                    DimOf(conv_.shape.volume[2]))) {
    if (conv_.bias >= 0) bias_dtype_ = op.inputs()[conv_.bias].dtype;
    // Tiles that are made together: their points, seen and made, take at most
    // half of a second-level cache of a MiB, but for the deepest.
    constexpr int64_t kNearFloats = 128 << 10;
    chunk_ = std::clamp<int64_t>(kNearFloats /
                                     (W::kPoints * (depth_ + MadeColumns())) /
                                     kTileRows * kTileRows,
                                 2 * kTileRows, 8 * kTileRows);
    row_ = WinogradRow(depth_);
    panel_stride_ = W::kPoints * depth_ * kPanel + kPanel;
  }

  const WinogradTiles& tiles() const { return tiles_; }

  int64_t WorkspaceFloats(int threads) const {
    return FilterFloats() + panels() * panel_stride_ + columns_ +
           std::max(1, threads) * ScratchFloats();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    float* const own = static_cast<float*>(buffers.workspace);
    Run run;
    run.source.dtype = source_.dtype;
    run.source.data = buffers.inputs[forward_ ? conv_.image : conv_.result];
    run.source.stride = depth_;
    run.result = buffers.outputs[0];
    run.threads = stream.threads();
    run.panels = own + FilterFloats();
    run.bias = run.panels + panels() * panel_stride_;
    run.scratch = run.bias + columns_;
    PackFilter(buffers.inputs[conv_.filter], own, run);
    if (conv_.bias >= 0) {
      ToFloat(bias_dtype_, buffers.inputs[conv_.bias], run.bias, columns_);
    } else {
      std::fill_n(run.bias, columns_, 0.0f);
    }
    RunChunks(run);
  }

 private:
  struct Run {
    PixelRows source;
    void* result;
    int threads;
    float *panels, *bias, *scratch;
  };

  int64_t panels() const { return columns_ / kPanel; }
  // Of the filter as f32, before it is transformed.
  int64_t FilterFloats() const {
    const TensorDesc& filter = conv_.filter_desc;
    return filter.dtype == DType::kF32 ? 0 : filter.elements();
  }
  // Of a gradient, the flipped filter makes the image of the result.
  WinogradTiles::Dim DimOf(const ConvDim& dim) const {
    if (forward_) return {dim.result, dim.image, dim.before};
    return {dim.image, dim.result, W::Down::kTap - 1 - dim.before};
  }
  // As of rows: points of a tile that lay a page apart would push each other
  // out of the first-level cache.
  int64_t PointFloats() const { return chunk_ * row_ + kPanel; }
  // What is made of a point at a time.
  static int64_t MadeColumns() { return PanelsAtOnce() * kPanel; }
  int64_t MadeFloats() const { return chunk_ * MadeColumns() + kPanel; }
  int64_t ScratchFloats() const {
    return W::kPoints * (PointFloats() + MadeFloats());
  }

  // Panels of columns: of each the points after each other, of each of them a
  // row for each channel of the source.
  void PackFilter(const void* from, float* own, const Run& run) const {
    const float* filter = static_cast<const float*>(from);
    if (FilterFloats() > 0) {
      ToFloat(conv_.filter_desc.dtype, from, own, FilterFloats());
      filter = own;
    }
    const int64_t blocks = depth_ / kPanel;
    ParallelFor(run.threads, panels() * blocks, 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t panel = i / blocks, row = i % blocks * kPanel;
                    PackBlock(filter, panel * kPanel, row,
                              run.panels + panel * panel_stride_);
                  }
                });
  }

  // Of a panel, kPanel channels of the source from `row` on.
  void PackBlock(const float* filter, int64_t column, int64_t row,
                 float* panel) const {
    const int64_t inner = conv_.shape.channels, filter_step = W::kTaps * inner;
    // Of vectors of the panel's columns: the first one, and steps to the next
    // row and the next tap.
    const float* from = filter + row * filter_step + column;
    int64_t row_step = filter_step, tap_step = -inner;
    float turned[W::kTaps * kPanel * kPanel];
    if (forward_) {
      from = filter + column * filter_step + row;
      row_step = kPanel;
      tap_step = kPanel * kPanel;
      for (int64_t i = 0; i < W::kTaps; ++i) {
        ToPanelsTransposed({from + i * inner, filter_step}, kPanel, kPanel,
                           turned + i * tap_step);
      }
      from = turned;
    } else {
      from += (W::kTaps - 1) * inner;  // flipped
    }
    float* const to = panel + row * kPanel;
    const int64_t point = depth_ * kPanel;
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      using V = WideVector<Low::kSize>;
      for (int64_t r = 0; r < kPanel; ++r) {
        for (int64_t c = 0; c < kPanel; c += Low::kSize) {
          const float* const taps = from + r * row_step + c;
          float* const points = to + r * kPanel + c;
          WinogradTransform<typename W::Down::FilterLine,
                            typename W::Across::FilterLine, V>(
              [=](int y, int x, V* tap) {
                *tap = *reinterpret_cast<const V*>(
                    taps + (y * W::Down::kTap + x) * tap_step);
              },
              [=](int y, int x, const V& made) {
                *reinterpret_cast<V*>(points + W::PointOf(y, x) * point) = made;
              });
        }
      }
    });
  }

  // Chunks of tiles; where these are few, blocks of panels of each.
  void RunChunks(const Run& run) const {
    const int64_t chunks = CeilDiv(tiles_.count(), chunk_);
    const int64_t blocks =
        std::clamp<int64_t>(CeilDiv(kTasksPerThread * run.threads, chunks), 1,
                            CeilDiv(panels(), PanelsAtOnce()));
    ForTasksWithScratch(
        run.threads, chunks * blocks, 1, run.scratch, ScratchFloats(),
        [&](int64_t begin, int64_t end, float* scratch) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t chunk = i / blocks, block = i % blocks;
            const WinogradOrder order(
                tiles_, {chunk * chunk_,
                         std::min(tiles_.count(), (chunk + 1) * chunk_)});
            if (block == 0 || i == begin) {
              TransformSeen<W>(tiles_, run.source, order, {0, depth_},
                               {scratch, PointFloats(), row_, kPanel});
            }
            Multiply(
                order,
                {panels() * block / blocks, panels() * (block + 1) / blocks},
                scratch, run);
          }
        });
  }

  void Multiply(const WinogradOrder& order, WinogradRange panels,
                float* scratch, const Run& run) const {
    float* const made = scratch + W::kPoints * PointFloats();
    const int64_t together = PanelsAtOnce();
    for (int64_t p = panels.begin; p < panels.end; p += together) {
      const int64_t n = std::min(together, panels.end - p);
      for (int64_t i = 0; i < W::kPoints; ++i) {
        const float* const right =
            run.panels + p * panel_stride_ + i * depth_ * kPanel;
        const WinogradRange of = W::TilesWith(order, i);
        kernels::Multiply(of.size(), n, depth_,
                          {scratch + i * PointFloats() + of.begin * row_, row_},
                          {right, panel_stride_}, /*add=*/false,
                          made + i * MadeFloats() + of.begin * MadeColumns(),
                          MadeColumns());
      }
      DispatchType(typename W::Types(), result_.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        Store<T>(order, p * kPanel, n * kPanel, made, run);
      });
    }
  }

  template <typename T>
  void Store(const WinogradOrder& order, int64_t column, int64_t n,
             const float* made, const Run& run) const {
    ForKinds<W>([&](WinogradKind kind, auto down, auto across) {
      if (order.Of(kind).size() == 0) return;
      StoreKind<typename decltype(down)::type::ResultLine,
                typename decltype(across)::type::ResultLine, T>(
          order, kind, column, n, made, run);
    });
  }
  // Of the tiles of a kind.
  template <typename Down, typename Across, typename T>
  void StoreKind(const WinogradOrder& order, WinogradKind kind, int64_t column,
                 int64_t n, const float* made, const Run& run) const {
    T* const result = static_cast<T*>(run.result) + column;
    const float* const bias = run.bias + column;
    const int64_t columns = columns_, point = MadeFloats();
    const int64_t row = MadeColumns();
    const WinogradRange range = order.range();
    const float* const first_tile = made + order.Of(kind).begin * row;
    const bool relu = relu_;
    const WinogradTiles tiles = tiles_;
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      using V = WideVector<Low::kSize>;
      const WinogradTiles::View view = tiles.Made();
      const float* tile = first_tile;
      WinogradTiles::Place place = tiles.PlaceOf(range.begin);
      for (int64_t t = range.begin; t < range.end; ++t, tiles.Advance(&place)) {
        if (tiles.KindOf(place) != kind) continue;
        const int64_t first =
            (place.sample * view.height + place.y) * view.width + place.x;
        for (int64_t c = 0; c < n; c += Low::kSize) {
          const float* const from = tile + c;
          const V added = *reinterpret_cast<const V*>(bias + c);
          WinogradTransform<Down, Across, V>(
              [=](int y, int x, V* made) {
                *made = *reinterpret_cast<const V*>(from +
                                                    W::PointOf(y, x) * point);
              },
              [&](int y, int x, const V& made) {
                if (place.y + y >= view.height || place.x + x >= view.width) {
                  return;
                }
                V pixel = made + added;
                float* const lanes = reinterpret_cast<float*>(&pixel);
                if (relu) ReluOfLanes<Low>(lanes);
                Low::Store(lanes,
                           result + (first + y * view.width + x) * columns + c);
              });
        }
        tile += row;
      }
    });
  }

  static constexpr int64_t kTileRows = 12;  // of no instruction set more
  static constexpr int64_t kTasksPerThread = 8;

  ConvOp conv_;
  bool relu_, forward_;
  TensorDesc source_, result_;
  int64_t depth_, columns_;  // channels of the source and of the result
  WinogradTiles tiles_;
  DType bias_dtype_ = DType::kF32;
  int64_t chunk_ = 0, row_ = 0, panel_stride_ = 0;
};

}  // namespace

bool HasWinograd(DType dtype) {
  return dtype != DType::kBF16 || !OnednnHasAmx();
}

bool IsWinograd(const ConvOp& conv) {
  if (!HasWinograd(conv.image_desc.dtype) || !LiesChannelsLast(conv)) {
    return false;
  }
  if (conv.shape.volume[1].filter != conv.shape.volume[2].filter) return false;
  for (int i : {1, 2}) {
    const ConvDim& dim = conv.shape.volume[i];
    if ((dim.filter != 3 && dim.filter != 5) || dim.stride != 1 ||
        dim.dilation != 1) {
      return false;
    }
  }
  return conv.shape.channels % kPanel == 0 && conv.shape.filters % kPanel == 0;
}

void RegisterCpuConvWinograd(KernelRegistry& registry) {
  const Candidate conv = WinogradCandidate<WinogradConv>(ConvOf);
  const Candidate grad_filter = WinogradGradFilterCandidate();
  for (const DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (!HasWinograd(t)) continue;
    for (const char* op : {"conv2d", "conv2d_grad_input"}) {
      registry.Add(op, {t}, Layout::kChannelsLast, conv);
    }
    for (const DType made : {DType::kF32, DType::kF16, DType::kBF16}) {
      registry.Add("conv2d_grad_filter", {t, made}, Layout::kChannelsLast,
                   grad_filter);
    }
    registry.AddPattern("conv_bias_relu", {t}, {Layout::kChannelsLast}, conv);
    registry.AddPattern("recompute_conv_grad_filter", {t},
                        {Layout::kChannelsLast}, grad_filter);
  }
}

}  // namespace kernels
}  // namespace halftone
