// The gradient of a convolution's filter for channels-last images, as products
// of matrices: for each tap, OutputGrad' [filters, pixels] times what the tap
// sees of Input [pixels, channels]. A thread makes the sums of a part of the
// pixels, or of some of the channels, or both. It packs a few lines of pixels
// at a time, so that what its products read lies in its caches: Input with its
// padding as panels of channels, OutputGrad as tiles of filters; all taps read
// the same panels. Where Input is relu(norm(X)), that is made while it is
// packed. The parts of the pixels are cut by the shape alone, and their sums
// are added in order. Where there are instructions for pairs of bf16, two
// samples are packed as one: a pair is of the same place in both, so that all
// taps see pairs.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/conv_packed.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/pack_rows.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/small_product.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace {

// What of a dim of the image is packed: a filter of one tap reads but one
// position for each window.
struct PackedDim {
  explicit PackedDim(const ConvDim& dim)
      : dim(dim),
        step(dim.filter == 1 ? 1 : dim.stride),
        from_step(dim.filter == 1 ? dim.stride : 1) {}

  // Positions that `windows` neighbours see.
  int64_t Seen(int64_t windows) const {
    return (windows - 1) * step + (dim.filter - 1) * dim.dilation + 1;
  }
  // Where the i-th of those of window `first` on lies in the image; outside:
  // padding.
  int64_t At(int64_t first, int64_t i) const {
    return first * dim.stride - dim.before + i * from_step;
  }

  ConvDim dim;
  int64_t step;       // packed positions from a window to the next
  int64_t from_step;  // positions from one that is packed to the next
};

// Lines [begin, end) of OutputGrad: rows of all samples, or pairs of them.
// Those of one sample are packed together: `lines` of the first one from its
// line `first` on, then whole samples and a rest.
struct Chunk {
  int64_t begin, end;
  int64_t sample, first, lines;
  bool is_first;  // of a part: sums begin
};

// What a thread makes, and the memory that it packs into.
struct Task {
  int64_t part, first_panel, end_panel;
  DepthPart* depths;  // a line each
  float *panels, *tiles;
  float* sums;  // of the part, all of it; where they are whole, of a block
  void* result;
  NormalizeMap norm;
};

class GradFilterKernel {
 public:
  explicit GradFilterKernel(const BoundOp& op)
      : conv_(GradFilterConvOf(op)),
        height_(conv_.shape.volume[1]),
        width_(conv_.shape.volume[2]),
        pairs_(MakesPairs(conv_)),
        blocks_(pairs_ && HasAmx()),
        tile_rows_(blocks_ ? kBlockRows : TileRows()) {
    const int64_t width = width_.dim.result, height = height_.dim.result;
    if (op.type() == "fusion") norm_.emplace(FusedOp(op).Of("norm"));
    lines_ = CeilDiv(conv_.shape.samples, each()) * height;
    parts_ = PartsOf(lines_ * width);
    chunk_ = std::clamp<int64_t>(ChunkPixels(op.context().threads) / width, 1,
                                 CeilDiv(lines_, parts_));
    // What the windows of a sample's lines share with each other is packed
    // once, so that samples are what makes rows.
    const int64_t samples = (chunk_ + height - 2) / height + 1;
    const int64_t rows =
        chunk_ * height_.step +
        samples * std::max<int64_t>(0, height_.Seen(1) - height_.step);
    // Caches have few places for what lies a power of two apart.
    panel_stride_ = rows * row_floats() + kPanel;
    tile_stride_ =
        taps() == 1 ? LineFloats(chunk_ * width) : chunk_ * LineFloats(width);
    tile_stride_ += kPanel;
  }

  static bool MakesPairs(const ConvOp& conv) {
    return conv.image_desc.dtype == DType::kBF16 &&
           conv.result_desc.dtype == DType::kBF16 && HasPairs();
  }

  int64_t WorkspaceFloats(int threads) const {
    return SumFloats() + FactorFloats() +
           std::max(1, threads) * TaskFloats(Blocks(threads));
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int threads = stream.threads();
    float* const own = static_cast<float*>(buffers.workspace);
    float* const sums =
        SumFloats() > 0 ? own : static_cast<float*>(buffers.outputs[0]);
    float* const factor = own + SumFloats();
    NormalizeMap norm = {};
    if (norm_) norm = MakeNormalizeMap(buffers, *norm_, channels(), factor);
    const int64_t blocks = Blocks(threads);
    ForTasksWithScratch(threads, parts_ * blocks, 1, factor + FactorFloats(),
                        TaskFloats(blocks),
                        [&](int64_t begin, int64_t end, float* scratch) {
                          for (int64_t i = begin; i < end; ++i) {
                            Task task = TaskAt(i, blocks, sums, scratch);
                            task.result = buffers.outputs[0];
                            task.norm = norm;
                            RunTask(buffers, task);
                          }
                        });
    if (SumFloats() > 0) Store(sums, threads, buffers.outputs[0]);
  }

 private:
  int64_t channels() const { return conv_.shape.channels; }
  int64_t filters() const { return conv_.shape.filters; }
  int64_t panels() const { return PanelsOf(channels()); }
  int64_t tiles() const { return CeilDiv(filters(), tile_rows_); }
  int64_t taps() const { return height_.dim.filter * width_.dim.filter; }
  // Of the packed image.
  int64_t row_floats() const { return width_.Seen(width_.dim.result) * kPanel; }
  // Of a line of a tile.
  int64_t LineFloats(int64_t pixels) const {
    return blocks_ ? DepthBlocks(pixels).count * kBlockFloats
                   : pixels * tile_rows_;
  }
  int64_t filter_floats() const { return taps() * Padded(channels()); }
  // Samples that are packed as one.
  int64_t each() const { return pairs_ ? 2 : 1; }
  int64_t PartSums() const { return filters() * filter_floats(); }
  bool SumsInOutput() const {
    return conv_.filter_desc.dtype == DType::kF32 && parts_ == 1 &&
           channels() % kPanel == 0;
  }
  // A chunk has all pixels, so that what a block of filters sums up is stored
  // at once: deep layers have few pixels and large filters.
  bool SumsAreWhole() const {
    return parts_ == 1 && chunk_ >= lines_ && !SumsInOutput();
  }
  int64_t SumFloats() const {
    return SumsInOutput() || SumsAreWhole() ? 0 : parts_ * PartSums();
  }
  int64_t BlockFloats() const {
    return SumsAreWhole() ? kBlockTiles * tile_rows_ * PanelsAtOnce() * kPanel
                          : 0;
  }
  int64_t FactorFloats() const { return norm_ ? Padded(channels()) : 0; }

  // Of the pixels: as many as threads that many machines have, while what they
  // sum lies in caches and they are long.
  int64_t PartsOf(int64_t pixels) const {
    constexpr int64_t kMostParts = 16, kMostSums = 512 << 10;
    constexpr int64_t kLeastPixels = 512;
    int64_t parts = kMostParts;
    while (parts > 1 && (parts * PartSums() > kMostSums ||
                         parts * kLeastPixels > pixels || parts > lines_)) {
      parts /= 2;
    }
    return parts;
  }
  int64_t Blocks(int threads) const {
    return EvenBlocks(parts_, panels(), threads);
  }

  // Pixels of a chunk, of which each thread has its own: the longer, the fewer
  // times sums are read and written; the shorter, the nearer lies what is
  // packed. Sums are the same, but for those of blocks, which a chunk begins.
  int64_t ChunkPixels(int threads) const {
    constexpr int64_t kNearSums = 512 << 10;
    if (PartSums() <= kNearSums) return 256;
    if (blocks_) return 1024;
    return std::clamp(4096 / std::max(1, threads), 256, 1024);
  }

  // Where each line of a chunk lies, packed.
  int64_t DepthFloats() const {
    return Padded(chunk_ *
                  static_cast<int64_t>(sizeof(DepthPart) / sizeof(float)));
  }
  int64_t TaskFloats(int64_t blocks) const {
    return DepthFloats() + CeilDiv(panels(), blocks) * panel_stride_ +
           Padded(tiles() * tile_stride_) + BlockFloats();
  }
  Task TaskAt(int64_t i, int64_t blocks, float* sums, float* scratch) const {
    Task task;
    task.part = i / blocks;
    const int64_t block = i % blocks;
    task.first_panel = panels() * block / blocks;
    task.end_panel = panels() * (block + 1) / blocks;
    task.depths = reinterpret_cast<DepthPart*>(scratch);
    task.panels = scratch + DepthFloats();
    task.tiles = task.panels + CeilDiv(panels(), blocks) * panel_stride_;
    task.sums = SumsAreWhole() ? task.tiles + Padded(tiles() * tile_stride_)
                               : sums + task.part * PartSums();
    return task;
  }

  void RunTask(const Buffers& buffers, const Task& task) const {
    const int64_t height = height_.dim.result;
    const int64_t first_line = lines_ * task.part / parts_;
    const int64_t end_line = lines_ * (task.part + 1) / parts_;
    for (int64_t begin = first_line; begin < end_line; begin += chunk_) {
      const int64_t end = std::min(end_line, begin + chunk_);
      const int64_t first = begin % height;
      const Chunk chunk = {begin,
                           end,
                           begin / height,
                           first,
                           std::min(height - first, end - begin),
                           begin == first_line};
      for (int64_t i = 0; i < end - begin; ++i) {
        task.depths[i] = {i * LineFloats(width_.dim.result),
                          PackedRow(chunk, i) * row_floats()};
      }
      Pack(buffers, chunk, task);
      ReadAhead ahead = Behind(buffers, task, end, end_line);
      Multiply(chunk, task, ahead.empty() ? nullptr : &ahead);
    }
  }

  // What the next chunk packs, where a task takes whole pixels, so that it lies
  // in a few pieces; else nothing, nor for AMX, whose products do not fetch.
  ReadAhead Behind(const Buffers& buffers, const Task& task, int64_t begin,
                   int64_t end_line) const {
    ReadAhead ahead;
    const int64_t end = std::min(end_line, begin + chunk_);
    const bool is_whole = task.end_panel - task.first_panel == panels();
    if (begin < end && is_whole && !blocks_) {
      const ConvDim &h = height_.dim, &w = width_.dim;
      const int64_t line = w.image * channels(), made = w.result * filters();
      AddLines(conv_.image_desc.dtype, buffers.inputs[conv_.image], begin, end,
               {h.image * line, h.stride * line,
                std::min(h.stride, h.filter) * line},
               &ahead);
      AddLines(conv_.result_desc.dtype, buffers.inputs[conv_.result], begin,
               end, {h.result * made, made, made}, &ahead);
    }
    return ahead;
  }
  // Elements of a sample, from a line of OutputGrad, or what it sees, to the
  // next, and what of them is read.
  struct Lines {
    int64_t sample, step, read;
  };
  // Lines [begin, end).
  void AddLines(DType dtype, const void* tensor, int64_t begin, int64_t end,
                const Lines& lines, ReadAhead* ahead) const {
    const int64_t height = height_.dim.result;
    const bool in_a_piece = lines.read == lines.step;
    while (begin < end) {
      const int64_t sample = begin / height, first = begin % height;
      const int64_t n = in_a_piece ? std::min(height - first, end - begin) : 1;
      const PixelRows rows = RowsOf(dtype, tensor, sample, lines.sample,
                                    first * lines.step, /*stride=*/0);
      for (const void* data : {rows.data, rows.second}) {
        if (data != nullptr) ahead->Add(data, n * lines.read * SizeOf(dtype));
      }
      begin += n;
    }
  }

  // The first row of Input, packed, that the i-th line of a chunk sees.
  int64_t PackedRow(const Chunk& chunk, int64_t i) const {
    if (i < chunk.lines) return i * height_.step;
    const int64_t height = height_.dim.result, rest = i - chunk.lines;
    return height_.Seen(chunk.lines) + rest / height * height_.Seen(height) +
           rest % height * height_.step;
  }

  void Pack(const Buffers& buffers, const Chunk& chunk,
            const Task& task) const {
    const int64_t lines = chunk.end - chunk.begin;
    const int64_t rows = PackedRow(chunk, lines - 1) + height_.Seen(1);
    for (int64_t row = 0; row < rows; ++row) {
      PackRow(buffers.inputs[conv_.image], chunk, row, task);
    }
    for (int64_t line = 0; line < lines; ++line) {
      PackLine(buffers.inputs[conv_.result], chunk, line, task);
    }
  }

  void PackRow(const void* image, const Chunk& chunk, int64_t row,
               const Task& task) const {
    int64_t sample = chunk.sample, line = chunk.first, i = row;
    if (row >= height_.Seen(chunk.lines)) {
      const int64_t each = height_.Seen(height_.dim.result);
      i -= height_.Seen(chunk.lines);
      sample += 1 + i / each;
      line = 0;
      i %= each;
    }
    const int64_t y = height_.At(line, i);
    const int64_t seen = width_.Seen(width_.dim.result), c = channels();
    float* const to = task.panels + row * row_floats();
    int64_t first = 0, end = 0;  // those that are no padding
    if (0 <= y && y < height_.dim.image) {
      const ConvDim& w = width_.dim;
      first = std::min(
          seen, CeilDiv(std::max<int64_t>(0, w.before), width_.from_step));
      end = std::clamp(CeilDiv(w.image + w.before, width_.from_step), first,
                       seen);
    }
    for (int64_t p = 0; p < task.end_panel - task.first_panel; ++p) {
      float* const panel = to + p * panel_stride_;
      std::fill(panel, panel + first * kPanel, 0.0f);
      std::fill(panel + end * kPanel, panel + seen * kPanel, 0.0f);
    }
    if (first == end) return;
    const int64_t x = width_.At(0, first);
    const int64_t channel = task.first_panel * kPanel;
    PixelRows pixels =
        RowsOf(conv_.image_desc.dtype, image, sample,
               height_.dim.image * width_.dim.image * c,
               (y * width_.dim.image + x) * c + channel, width_.from_step * c);
    const NormalizeMap norm = task.norm.From(channel);
    if (norm_) pixels.norm = &norm;
    PackPanels(pixels, end - first,
               std::min(c, task.end_panel * kPanel) - channel, panel_stride_,
               to + first * kPanel);
  }

  void PackLine(const void* gradient, const Chunk& chunk, int64_t line,
                const Task& task) const {
    const int64_t width = width_.dim.result, height = height_.dim.result;
    const int64_t n = width * filters(), at = chunk.begin + line;
    const PixelRows rows =
        RowsOf(conv_.result_desc.dtype, gradient, at / height, height * n,
               at % height * n, filters());
    if (blocks_ && taps() == 1) {
      return PackBlocks(rows, width, filters(), line * width,
                        (chunk.end - chunk.begin) * width, tile_stride_,
                        task.tiles);
    }
    float* const to = task.tiles + line * LineFloats(width);
    if (blocks_) {
      PackBlocks(rows, width, filters(), 0, width, tile_stride_, to);
    } else {
      PackTiles(rows, width, filters(), tile_stride_, to);
    }
  }

  // Of a sample or a pair of them, of `size` elements each, from their element
  // `at` on.
  PixelRows RowsOf(DType dtype, const void* tensor, int64_t sample,
                   int64_t size, int64_t at, int64_t stride) const {
    const int64_t n = SizeOf(dtype);
    const char* const first =
        static_cast<const char*>(tensor) + (sample * each() * size + at) * n;
    PixelRows rows = {dtype, first, stride};
    rows.pairs = pairs_;
    if (2 * sample + 1 < conv_.shape.samples) rows.second = first + size * n;
    return rows;
  }

  // Panels, tap and block of filters after each other: panels stay in the
  // first-level cache for all filters.
  void Multiply(const Chunk& chunk, const Task& task, ReadAhead* ahead) const {
    const int64_t block = kBlockTiles * tile_rows_, together = PanelsAtOnce();
    for (int64_t p = task.first_panel; p < task.end_panel; p += together) {
      const int64_t n = std::min(together, task.end_panel - p);
      for (int64_t tap = 0; tap < taps(); ++tap) {
        for (int64_t f = 0; f < filters(); f += block) {
          MultiplyBlock(chunk, task, {p, n}, tap, f, ahead);
        }
      }
    }
  }

  struct PanelRange {
    int64_t first, count;
  };
  void MultiplyBlock(const Chunk& chunk, const Task& task, PanelRange panels,
                     int64_t tap, int64_t filter, ReadAhead* ahead) const {
    const ConvDim &h = height_.dim, &w = width_.dim;
    const int64_t seen = (tap / w.filter * h.dilation) * row_floats() +
                         (tap % w.filter * w.dilation) * kPanel;
    PartsProduct product;
    product.rows = std::min(kBlockTiles * tile_rows_, filters() - filter);
    product.panels = panels.count;
    product.pairs = pairs_;
    product.ahead = ahead;
    // Lines of one tap follow each other: one long line.
    const int64_t lines = chunk.end - chunk.begin;
    product.parts = absl::MakeConstSpan(task.depths, taps() == 1 ? 1 : lines);
    product.depth = w.result * (taps() == 1 ? lines : 1);
    product.left.data = task.tiles + filter / tile_rows_ * tile_stride_;
    product.tile_stride = tile_stride_;
    product.blocks = blocks_;
    product.right = {
        task.panels + (panels.first - task.first_panel) * panel_stride_ + seen,
        panel_stride_, width_.step * kPanel};
    if (SumsAreWhole()) {
      const int64_t row = panels.count * kPanel;
      kernels::Multiply(product, /*add=*/false, task.sums, row);
      return StoreBlock(product.rows, row, panels.first * kPanel, tap, filter,
                        task);
    }
    kernels::Multiply(product, /*add=*/!chunk.is_first,
                      task.sums + filter * filter_floats() +
                          tap * Padded(channels()) + panels.first * kPanel,
                      filter_floats());
  }

  // Of the filters from `filter` on and the channels from `channel` on.
  void StoreBlock(int64_t filters, int64_t row, int64_t channel, int64_t tap,
                  int64_t filter, const Task& task) const {
    const DType dtype = conv_.filter_desc.dtype;
    for (int64_t i = 0; i < filters; ++i) {
      const int64_t at = ((filter + i) * taps() + tap) * channels() + channel;
      FromFloat(dtype, task.sums + i * row,
                static_cast<char*>(task.result) + at * SizeOf(dtype),
                std::min(row, channels() - channel));
    }
  }

  // The sums of the parts, in order; those of the first become the result.
  void Store(float* sums, int threads, void* to) const {
    const DType dtype = conv_.filter_desc.dtype;
    const int64_t row = Padded(channels()), part = PartSums();
    ParallelFor(threads, filters() * taps(),
                std::max<int64_t>(1, kMapGrain / (channels() * parts_)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    float* const all = sums + i * row;
                    ForIsa([=] {
                      for (int64_t p = 1; p < parts_; ++p) {
                        const float* const next = all + p * part;
#pragma GCC ivdep
                        for (int64_t c = 0; c < row; ++c) all[c] += next[c];
                      }
                    });
                    FromFloat(
                        dtype, all,
                        static_cast<char*>(to) + i * channels() * SizeOf(dtype),
                        channels());
                  }
                });
  }

  // Tiles of filters that a thread takes at a time.
  static constexpr int64_t kBlockTiles = 8;

  ConvOp conv_;
  std::optional<NormAt> norm_;
  PackedDim height_, width_;
  bool pairs_, blocks_;
  int64_t tile_rows_;
  int64_t lines_ = 0, parts_ = 1;  // of OutputGrad
  int64_t chunk_ = 0;              // lines of a chunk, at most
  int64_t panel_stride_ = 0, tile_stride_ = 0;
};

}  // namespace

ConvOp GradFilterConvOf(const BoundOp& op) {
  if (op.type() != "fusion") return JoinTaps(ConvOp::Of(op));
  const FusedOp fused(op);
  const BoundOp conv_op = fused.Of("conv");
  ConvOp conv = ConvOp::Of(conv_op);
  conv.image = ArgumentPosition(fused.Of("norm"), "X");
  conv.result = ArgumentPosition(conv_op, "OutputGrad");
  return conv;
}

int64_t EvenBlocks(int64_t parts, int64_t panels, int threads) {
  const int64_t t = std::max(1, threads);
  int64_t blocks = 1;
  const auto is_even = [&] {
    const int64_t tasks = parts * blocks;
    return 7 * CeilDiv(tasks, t) * t <= 8 * tasks;
  };
  while (blocks < panels && !is_even()) ++blocks;
  return blocks;
}

Candidate ConvGradFilterCandidate() {
  Candidate candidate = MakeCandidate(
      "packed", [](const BoundOp& op) { return GradFilterKernel(op); });
  candidate.supports = [](const BoundOp& op) {
    const ConvOp conv = GradFilterConvOf(op);
    // Half of the only pair would be for nothing.
    const bool is_waste =
        GradFilterKernel::MakesPairs(conv) && conv.shape.samples == 1;
    return conv.image >= 0 && conv.result >= 0 && !is_waste &&
           IsPackable(conv, conv.shape.channels);
  };
  candidate.workspace_bytes = [](const BoundOp& op) {
    return GradFilterKernel(op).WorkspaceFloats(op.context().threads) *
           static_cast<int64_t>(sizeof(float));
  };
  return candidate;
}

}  // namespace kernels
}  // namespace halftone
