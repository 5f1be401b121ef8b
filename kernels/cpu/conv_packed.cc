// Convolutions and the gradients of their inputs for channels-last images, as
// products of matrices, without unrolled images: a line of windows is rows of
// the left factor, whose columns, the channels that the taps see, lie one after
// the other in the image; the filter is packed as panels of what is made.
//
// Both are of one form. Of a position of the result along a dim and a tap there
// is at most one position of the source, and positions of the result that are
// a stride apart see the same taps: a gradient with strides is a few such
// parts, each with taps of its own, a forward convolution one with all.
#include "kernels/cpu/conv_packed.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/conv_phases.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/read_ahead.h"
#include "kernels/cpu/small_product.h"
#include "kernels/cpu/store_rows.h"
#include "kernels/cpu/streamed_output.h"

namespace halftone {
namespace kernels {
namespace {

// One phase of both dims.
struct Part {
  Phase h, w;
  int64_t filter_at = 0;  // of its packed filter, from a panel's begin on

  bool empty() const { return h.taps.empty() || w.taps.empty(); }
  int64_t taps() const {
    return static_cast<int64_t>(h.taps.size() * w.taps.size());
  }
  // Packed positions of a line of the source: with its padding.
  int64_t seen() const { return w.SourceEnd() - w.at.front(); }
};

class PackedConv {
 public:
  explicit PackedConv(const BoundOp& op)
      : conv_(JoinTaps(ConvOf(op))),
        relu_(op.type() == "fusion"),
        forward_(conv_.computed == ConvResult::kResult),
        source_(forward_ ? conv_.image_desc : conv_.result_desc),
        result_(forward_ ? conv_.result_desc : conv_.image_desc),
        pairs_(PairsDepth(conv_)),
        along_lines_(PairsAlongLines(conv_)),
        depth_((forward_ ? conv_.shape.channels : conv_.shape.filters) /
               (pairs_ && !along_lines_ ? 2 : 1)),
        columns_(forward_ ? conv_.shape.filters : conv_.shape.channels) {
    if (conv_.bias >= 0) bias_dtype_ = op.inputs()[conv_.bias].dtype;
    JoinLines();
    int64_t depth = 0;
    for (const Phase& h : PhasesOf(conv_.shape.volume[1], forward_)) {
      for (const Phase& w : PhasesOf(conv_.shape.volume[2], forward_)) {
        parts_.push_back({h, w, depth * kPanel});
        depth += static_cast<int64_t>(h.taps.size()) * LineDepth(w);
        MeasureChunk(parts_.back());
      }
    }
    // Caches have few places for what lies a power of two apart.
    panel_stride_ = depth * kPanel + kPanel;
  }

  // Not where a line of few windows leaves most of a tile's rows for nothing,
  // nor odd channels of pairs.
  static bool Supports(const BoundOp& op) {
    const ConvOp conv = JoinTaps(ConvOf(op));
    const ConvShape& shape = conv.shape;
    const bool forward = conv.computed == ConvResult::kResult;
    if (!IsPackable(conv, forward ? shape.filters : shape.channels) ||
        (PairsDepth(conv) && !PairsAlongLines(conv) &&
         (forward ? shape.channels : shape.filters) % 2 != 0)) {
      return false;
    }
    const PackedConv kernel(op);
    return std::all_of(
        kernel.parts_.begin(), kernel.parts_.end(),
        [](const Part& part) { return part.w.count >= kLeastWindows; });
  }

  int64_t WorkspaceFloats(int threads) const {
    return FilterFloats() + panels() * panel_stride_ + Padded(columns_) +
           std::max(1, threads) * ScratchFloats();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    float* const filter = static_cast<float*>(buffers.workspace);
    Run run;
    run.source = static_cast<const char*>(
        buffers.inputs[forward_ ? conv_.image : conv_.result]);
    run.result = static_cast<char*>(buffers.outputs[0]);
    run.threads = stream.threads();
    run.streams = Streams(run.result);
    run.panels = filter + FilterFloats();
    run.bias = run.panels + panels() * panel_stride_;
    run.scratch = run.bias + Padded(columns_);
    PackFilter(buffers.inputs[conv_.filter], filter, run);
    if (conv_.bias >= 0) {
      ToFloat(bias_dtype_, buffers.inputs[conv_.bias], run.bias, columns_);
      std::fill(run.bias + columns_, run.bias + Padded(columns_), 0.0f);
    }
    for (const Part& part : parts_) RunPart(part, run);
  }

 private:
  struct Run {
    const char* source;
    char* result;
    int threads;
    float *panels, *bias, *scratch;
    bool streams;
  };
  // Lines [begin, end) of a sample's part of the result, and what they see.
  struct Chunk {
    const Part* part;
    int64_t sample, begin, end;
    const float* source;  // of the line and position that `row` is
    int64_t row, line_stride;
    char* result;  // of line `begin`
    int64_t result_line, result_step;
  };
  // What a line of windows sees.
  using Depths = absl::InlinedVector<DepthPart, 32>;

  int64_t panels() const { return PanelsOf(columns_); }
  // Of a line of taps: rows of a panel.
  int64_t LineDepth(const Phase& w) const {
    const int64_t seen = static_cast<int64_t>(w.taps.size()) * depth_;
    return along_lines_ ? (seen + 1) / 2 : seen;
  }
  int64_t SourceSize(int i) const {
    const ConvDim& dim = conv_.shape.volume[i];
    return forward_ ? dim.image : dim.result;
  }
  int64_t ResultSize(int i) const {
    const ConvDim& dim = conv_.shape.volume[i];
    return forward_ ? dim.result : dim.image;
  }
  // Of the filter as f32, before it is packed.
  int64_t FilterFloats() const {
    const TensorDesc& filter = conv_.filter_desc;
    return filter.dtype == DType::kF32 || pairs_ ? 0 : filter.elements();
  }

  // Where each window is one position, lines follow each other: they are cut
  // anew, as long as a chunk.
  void JoinLines() {
    ConvDim *h = &conv_.shape.volume[1], *w = &conv_.shape.volume[2];
    for (const ConvDim* dim : {h, w}) {
      if (dim->filter != 1 || dim->stride != 1 || dim->before != 0 ||
          dim->image != dim->result) {
        return;
      }
    }
    const int64_t pixels = conv_.shape.samples * h->image * w->image;
    int64_t line = std::min(pixels, ChunkPixels());
    while (pixels % line != 0) --line;
    if (line < w->image) return;
    conv_.shape.samples = 1;
    h->image = h->result = pixels / line;
    w->image = w->result = line;
  }

  // Whether windows are read where they lie.
  bool ReadsInPlace(const Part& part) const {
    return part.empty() ||
           ((source_.dtype == DType::kF32 || (pairs_ && !along_lines_)) &&
            part.w.at.front() >= 0 && part.w.SourceEnd() <= SourceSize(2));
  }
  bool StoresInPlace() const {
    return columns_ % kPanel == 0 &&
           (result_.dtype == DType::kF32 || RoundsInPlace());
  }
  // Whether they are stored around the caches: whole lines, of a large result.
  bool Streams(const char* result) const {
    constexpr uintptr_t kLine = ReadAhead::kLine;
    return StoresInPlace() && !relu_ && columns_ % (2 * kPanel) == 0 &&
           reinterpret_cast<uintptr_t>(result) % kLine == 0 &&
           result_.elements() * SizeOf(result_.dtype) >= LeastStreamedBytes();
  }
  // To 16 bits.
  bool RoundsInPlace() const {
    return IsLow(result_.dtype) && RoundsProducts(pairs_);
  }
  // Else: what is made at a time, and stored while it is near.
  static int64_t StoredColumns() { return PanelsAtOnce() * kPanel; }
  // What is made together: what it reads lies in the second-level cache, beside
  // a panel.
  int64_t ChunkPixels() const {
    if (depth_ < kPanel) return 1024;
    return depth_ <= 512 ? 192 : 96;
  }
  int64_t ChunkLines(const Part& part) const {
    return std::clamp<int64_t>(ChunkPixels() / part.w.count, 1, part.h.count);
  }
  static int64_t SourceLines(const Part& part, int64_t lines) {
    return (lines - 1) * part.h.source_step + part.h.at.back() -
           part.h.at.front() + 1;
  }
  int64_t ScratchFloats() const { return source_floats_ + result_floats_; }
  void MeasureChunk(const Part& part) {
    const int64_t lines = ChunkLines(part);
    if (!ReadsInPlace(part)) {
      source_floats_ =
          std::max(source_floats_,
                   SourceLines(part, lines) * part.seen() * depth_ + kPanel);
    }
    if (!StoresInPlace()) {
      result_floats_ =
          std::max(result_floats_, lines * part.w.count * StoredColumns());
    }
  }

  // Panels of the result's channels: the taps of a part after each other, of
  // each a row for each channel of the source.
  void PackFilter(const void* from, float* own, const Run& run) const {
    const int64_t h_taps = conv_.shape.volume[1].filter;
    const int64_t w_taps = conv_.shape.volume[2].filter;
    const int64_t channels = conv_.shape.channels;
    const int64_t taps = h_taps * w_taps;
    const float* filter = static_cast<const float*>(from);
    if (along_lines_) {
      return PackPairs(static_cast<const uint16_t*>(from), run);
    }
    if (FilterFloats() > 0) {
      const DType dtype = conv_.filter_desc.dtype;
      ParallelFor(run.threads, FilterFloats(), kMapGrain,
                  [&](int64_t begin, int64_t end) {
                    ToFloat(
                        dtype,
                        static_cast<const char*>(from) + begin * SizeOf(dtype),
                        own + begin, end - begin);
                  });
      filter = own;
    }
    for (const Part& part : parts_) {
      const int64_t lines = static_cast<int64_t>(part.h.taps.size());
      const int64_t each = static_cast<int64_t>(part.w.taps.size());
      ParallelFor(
          run.threads, panels() * part.taps(), 1,
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const int64_t panel = i / (lines * each);
              const int64_t tap = i % (lines * each);
              const int64_t at =
                  part.h.taps[tap / each] * w_taps + part.w.taps[tap % each];
              const int64_t column = panel * kPanel;
              const int64_t n = std::min(kPanel, columns_ - column);
              float* to = run.panels + panel * panel_stride_ + part.filter_at +
                          tap * depth_ * kPanel;
              if (forward_) {
                ToPanelsTransposed(
                    {filter + (column * taps + at) * depth_, taps * depth_}, n,
                    depth_, to);
              } else if (pairs_) {
                const uint16_t* const first =
                    static_cast<const uint16_t*>(from) + at * channels + column;
                const int64_t row = taps * channels;
                FillPanels({first, first + row, 2 * row}, depth_, n,
                           /*stride=*/0, to);
              } else {
                FillPanels({filter + at * channels + column, taps * channels},
                           depth_, n, /*stride=*/0, to);
              }
            }
          });
    }
  }

  // Pairs along lines: of an odd one's last element and a zero.
  void PackPairs(const uint16_t* filter, const Run& run) const {
    const int64_t lines = conv_.shape.volume[1].filter;
    const int64_t line = conv_.shape.volume[2].filter * depth_;
    ParallelFor(run.threads, panels(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin * kPanel; c < end * kPanel; ++c) {
        float* to = run.panels + c / kPanel * panel_stride_ + c % kPanel;
        for (int64_t i = 0; i < lines; ++i) {
          const uint16_t* const from = filter + (c * lines + i) * line;
          for (int64_t k = 0; k < line; k += 2, to += kPanel) {
            uint32_t pair = c < columns_ ? from[k] : 0;
            if (c < columns_ && k + 1 < line)
              pair |= uint32_t{from[k + 1]} << 16;
            std::memcpy(to, &pair, sizeof(pair));
          }
        }
      }
    });
  }

  // Chunks of all samples; where these are few, blocks of panels of each.
  void RunPart(const Part& part, const Run& run) const {
    const int64_t lines = ChunkLines(part);
    const int64_t chunks = CeilDiv(part.h.count, lines);
    const int64_t all = conv_.shape.samples * chunks;
    const int64_t together = PanelsAtOnce();
    const int64_t groups = CeilDiv(panels(), together);
    const int64_t blocks = std::clamp<int64_t>(
        CeilDiv(kTasksPerThread * run.threads, all), 1, groups);
    const auto chunk_of = [&](int64_t task) {
      const int64_t first = task / blocks % chunks * lines;
      return Chunk{&part, task / blocks / chunks, first,
                   std::min(part.h.count, first + lines)};
    };
    const auto panel_of = [&](int64_t block) {
      return std::min(panels(), groups * block / blocks * together);
    };
    ForTasksWithScratch(run.threads, all * blocks, 1, run.scratch,
                        ScratchFloats(),
                        [&](int64_t begin, int64_t end, float* scratch) {
                          for (int64_t i = begin; i < end; ++i) {
                            ReadAhead ahead;
                            if (i + 1 < end) {
                              AddSource(chunk_of(i + 1), run, &ahead);
                            }
                            const int64_t block = i % blocks;
                            RunChunk(chunk_of(i), panel_of(block),
                                     panel_of(block + 1), scratch, run, &ahead);
                          }
                          FinishStores();
                        });
  }

  // The source's lines that the chunk sees, unless most of them are left out.
  void AddSource(const Chunk& chunk, const Run& run, ReadAhead* ahead) const {
    const Part& part = *chunk.part;
    if (part.empty() || !IsWhole(part.h) || !IsWhole(part.w)) return;
    const int64_t height = SourceSize(1);
    const int64_t first = chunk.begin * part.h.source_step + part.h.at.front();
    const int64_t last = first + SourceLines(part, chunk.end - chunk.begin);
    const int64_t begin = std::clamp<int64_t>(first, 0, height);
    const int64_t end = std::clamp<int64_t>(last, begin, height);
    const int64_t line = source_.elements() / (conv_.shape.samples * height) *
                         SizeOf(source_.dtype);
    ahead->Add(run.source + (chunk.sample * height + begin) * line,
               (end - begin) * line);
  }
  static bool IsWhole(const Phase& phase) {
    return phase.source_step <= static_cast<int64_t>(phase.taps.size());
  }

  // `ahead`: what the next one sees comes near while the last panels are made.
  void RunChunk(Chunk chunk, int64_t first_panel, int64_t end_panel,
                float* scratch, const Run& run, ReadAhead* ahead) const {
    FindSource(run, scratch, &chunk);
    FindResult(run, scratch + source_floats_, &chunk);
    const int64_t together = PanelsAtOnce();
    for (int64_t panel = first_panel; panel < end_panel; panel += together) {
      const int64_t n = std::min(together, end_panel - panel);
      int64_t lines;
      for (int64_t line = 0; line < chunk.end - chunk.begin; line += lines) {
        lines = LinesFrom(chunk, line);
        RunLines(chunk, panel, n, line, lines, run,
                 panel + n == end_panel && !ahead->empty() ? ahead : nullptr);
      }
      if (!StoresInPlace() || relu_) {
        Store(chunk, panel * kPanel, std::min(columns_, (panel + n) * kPanel),
              run);
      }
    }
  }

  // Where it lies, or packed with its padding.
  void FindSource(const Run& run, float* scratch, Chunk* chunk) const {
    const Part& part = *chunk->part;
    if (part.empty()) return;
    const int64_t height = SourceSize(1), width = SourceSize(2);
    const int64_t sample = chunk->sample * height * width;
    if (ReadsInPlace(part)) {
      chunk->source = reinterpret_cast<const float*>(run.source) +
                      (sample + part.w.at.front()) * depth_;
      chunk->row = 0;
      chunk->line_stride = width * depth_;
      return;
    }
    const int64_t seen = part.seen();
    const int64_t first =
        std::min(seen, std::max<int64_t>(0, -part.w.at.front()));
    const int64_t end = std::clamp(width - part.w.at.front(), first, seen);
    chunk->source = scratch;
    chunk->row = chunk->begin * part.h.source_step + part.h.at.front();
    chunk->line_stride = seen * depth_;
    const int64_t rows = SourceLines(part, chunk->end - chunk->begin);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = chunk->row + i;
      if (row < 0 || row >= height) continue;  // no tap looks there
      float* const to = scratch + i * chunk->line_stride;
      const int64_t at =
          (sample + row * width + part.w.at.front() + first) * depth_;
      std::fill(to, to + first * depth_, 0.0f);
      if (along_lines_) {
        PairLine(reinterpret_cast<const uint16_t*>(run.source) + at,
                 (end - first) * depth_, first > 0, to + first * depth_);
      } else if (pairs_) {
        std::memcpy(to + first * depth_, run.source + at * sizeof(float),
                    (end - first) * depth_ * sizeof(float));
      } else {
        ToFloat(source_.dtype, run.source + at * SizeOf(source_.dtype),
                to + first * depth_, (end - first) * depth_);
      }
      std::fill(to + end * depth_, to + seen * depth_, 0.0f);
    }
  }

  // Each of n elements with its neighbour, of which there is none behind the
  // last one; before the first one, `padded`, a zero with that.
  static void PairLine(const uint16_t* x, int64_t n, bool padded, float* to) {
    if (n == 0) return;
    FillPanels(PairRows{x, x + 1, 0}, 1, n - 1, kPanel, to);
    const uint32_t last = x[n - 1], before = uint32_t{x[0]} << 16;
    std::memcpy(to + n - 1, &last, sizeof(last));
    if (padded) std::memcpy(to - 1, &before, sizeof(before));
  }

  // Of the i-th line: a line of taps, or a tap, of those that lie in the image.
  Depths DepthsOf(const Chunk& chunk, int64_t i) const {
    const Part& part = *chunk.part;
    const int64_t each = static_cast<int64_t>(part.w.taps.size());
    const int64_t first = (chunk.begin + i) * part.h.source_step;
    Depths depths;
    if (part.empty()) return depths;
    for (size_t t = 0; t < part.h.taps.size(); ++t) {
      const int64_t row = first + part.h.at[t];
      if (row < 0 || row >= SourceSize(1)) continue;
      const int64_t left = (row - chunk.row) * chunk.line_stride;
      const int64_t right =
          part.filter_at + static_cast<int64_t>(t) * LineDepth(part.w) * kPanel;
      for (int64_t u = 0; u < (part.w.IsDense() ? 1 : each); ++u) {
        depths.push_back({left + (part.w.at[u] - part.w.at[0]) * depth_,
                          right + u * depth_ * kPanel});
      }
    }
    return depths;
  }

  // From the i-th line on, those that see lines in the same places, in the
  // image.
  int64_t LinesFrom(const Chunk& chunk, int64_t i) const {
    const Phase& h = chunk.part->h;
    if (chunk.part->empty() || (pairs_ && HasAmx())) return 1;
    const auto is_inside = [&](int64_t line) {
      const int64_t first = (chunk.begin + line) * h.source_step;
      return first + h.at.front() >= 0 && first + h.at.back() < SourceSize(1);
    };
    int64_t n = is_inside(i) ? chunk.end - chunk.begin - i : 1;
    while (n > 1 && !is_inside(i + n - 1)) --n;
    return n;
  }

  void FindResult(const Run& run, float* scratch, Chunk* chunk) const {
    const Part& part = *chunk->part;
    if (!StoresInPlace()) {
      chunk->result = reinterpret_cast<char*>(scratch);
      chunk->result_step = StoredColumns();
      chunk->result_line = part.w.count * StoredColumns();
      return;
    }
    chunk->result = run.result + ResultAt(*chunk, chunk->begin, 0) * columns_ *
                                     SizeOf(result_.dtype);
    chunk->result_step = part.w.step * columns_;
    chunk->result_line = part.h.step * ResultSize(2) * columns_;
  }
  // The position of the i-th result of a line.
  int64_t ResultAt(const Chunk& chunk, int64_t line, int64_t i) const {
    const Part& part = *chunk.part;
    const int64_t row =
        chunk.sample * ResultSize(1) + part.h.first + line * part.h.step;
    return row * ResultSize(2) + part.w.first + i * part.w.step;
  }

  // Of `lines` from `line` on, which see lines in the same places.
  void RunLines(const Chunk& chunk, int64_t panel, int64_t panels, int64_t line,
                int64_t lines, const Run& run, ReadAhead* ahead) const {
    const Part& part = *chunk.part;
    const Depths depths = DepthsOf(chunk, line);
    const int64_t at =
        line * chunk.result_line + (StoresInPlace() ? panel * kPanel : 0);
    PartsProduct product;
    product.rows = part.w.count;
    product.panels = panels;
    product.parts = depths;
    product.depth = part.w.IsDense() ? LineDepth(part.w) : depth_;
    product.left = {chunk.source, part.w.source_step * depth_,
                    along_lines_ ? 2 : 1};
    product.lines = {lines, part.h.source_step * chunk.line_stride,
                     chunk.result_line};
    product.right = {run.panels + panel * panel_stride_, panel_stride_};
    product.pairs = pairs_;
    product.ahead = ahead;
    product.streams = run.streams;
    if (conv_.bias >= 0) product.bias = run.bias + panel * kPanel;
    const DType stored = StoresInPlace() ? result_.dtype : DType::kF32;
    DispatchType(FloatTypes(), stored, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* const to = reinterpret_cast<T*>(chunk.result) + at;
      if constexpr (std::is_same_v<T, float>) {
        Multiply(product, /*add=*/false, to, chunk.result_step);
      } else {
        MultiplyRounded(product, to, chunk.result_step);
      }
    });
  }

  // Columns [begin, end), from the scratch or, for the relu, where they lie.
  void Store(const Chunk& chunk, int64_t begin, int64_t end,
             const Run& run) const {
    const Part& part = *chunk.part;
    for (int64_t line = chunk.begin; line < chunk.end; ++line) {
      const float* from = reinterpret_cast<const float*>(chunk.result) +
                          (line - chunk.begin) * chunk.result_line;
      const int64_t at = ResultAt(chunk, line, 0) * columns_ + begin;
      DispatchType(FloatTypes(), result_.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        T* const to = reinterpret_cast<T*>(run.result) + at;
        const int64_t stride = part.w.step * columns_;
        if (StoresInPlace()) {
          StoreRows(to, stride, part.w.count, end - begin, relu_, to, stride);
        } else {
          StoreRows(from, chunk.result_step, part.w.count, end - begin, relu_,
                    to, stride);
        }
      });
    }
  }

  static constexpr int64_t kLeastWindows = 4;  // of a line
  static constexpr int64_t kTasksPerThread = 4;

  ConvOp conv_;
  bool relu_;  // of what is made: a fusion's
  bool forward_;
  TensorDesc source_, result_;
  bool pairs_, along_lines_;
  // Channels of the source, or pairs of them, and of the result.
  int64_t depth_, columns_;
  DType bias_dtype_ = DType::kF32;
  std::vector<Part> parts_;
  int64_t panel_stride_ = 0;
  int64_t source_floats_ = 0, result_floats_ = 0;
};

}  // namespace

void RegisterCpuConvPacked(KernelRegistry& registry, bool before_onednn) {
  Candidate conv =
      MakeCandidate("packed", [](const BoundOp& op) { return PackedConv(op); });
  conv.supports = PackedConv::Supports;
  conv.workspace_bytes = [](const BoundOp& op) {
    return PackedConv(op).WorkspaceFloats(op.context().threads) *
           static_cast<int64_t>(sizeof(float));
  };
  const Candidate grad_filter = ConvGradFilterCandidate();
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (const DType t : dtypes) {
    for (const std::string op : {"conv2d", "conv2d_grad_input"}) {
      Candidate part = conv;
      part.supports = [t, before_onednn](const BoundOp& op) {
        return IsPackedFirst(op, t) == before_onednn &&
               PackedConv::Supports(op);
      };
      registry.Add(op, {t}, Layout::kChannelsLast, part);
    }
    if (!before_onednn) continue;
    Candidate relu = conv;
    relu.supports = [t](const BoundOp& fusion) {
      return IsPackedFirst(fusion, t) && PackedConv::Supports(fusion);
    };
    registry.AddPattern("conv_bias_relu", {t}, {Layout::kChannelsLast}, relu);
    for (const DType made : dtypes) {
      registry.Add("conv2d_grad_filter", {t, made}, Layout::kChannelsLast,
                   grad_filter);
    }
    registry.AddPattern("recompute_conv_grad_filter", {t},
                        {Layout::kChannelsLast}, grad_filter);
  }
}

}  // namespace kernels
}  // namespace halftone
