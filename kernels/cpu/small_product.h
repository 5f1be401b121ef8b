// Products of f32 or bf16 matrices, summed in f32, for kernels that make their
// factors tile by tile: on the calling thread, with no memory of its own.
#ifndef HALFTONE_KERNELS_CPU_SMALL_PRODUCT_H_
#define HALFTONE_KERNELS_CPU_SMALL_PRODUCT_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "graph/base/half.h"
#include "kernels/cpu/read_ahead.h"

namespace halftone {
namespace kernels {

// Whether this machine multiplies pairs of bf16 (AVX512_BF16): products are
// exact, sums of f32 rounded to nearest, subnormal numbers count as zeros.
bool HasPairs();

// Columns of a panel.
inline constexpr int64_t kPanel = 16;

inline int64_t PanelsOf(int64_t columns) {
  return (columns + kPanel - 1) / kPanel;
}
inline int64_t Padded(int64_t columns) { return PanelsOf(columns) * kPanel; }

// Rows of f32, `stride` elements apart; as a left factor, columns too.
struct Matrix32 {
  const float* data = nullptr;
  int64_t stride = 0;
  int64_t column_stride = 1;

  Matrix32 Transposed() const { return {data, column_stride, stride}; }
};

// A right factor: 16 columns at a time, row by row; the last panel is filled
// up with zeros.
struct Panels {
  const float* data = nullptr;
  int64_t stride = 0;         // between panels
  int64_t row_step = kPanel;  // between rows of a panel
};

// Rows of a left factor that are multiplied together on this machine; packed as
// tiles, their numbers of one column are neighbours.
int64_t TileRows();

// x [rows, columns] as panels of its columns, at `to` (rows * Padded(columns)
// floats), and x' as panels of x's rows (columns * Padded(rows)).
Panels ToPanels(const Matrix32& x, int64_t rows, int64_t columns, float* to);
Panels ToPanelsTransposed(const Matrix32& x, int64_t rows, int64_t columns,
                          float* to);

// The same into panels that are there, `stride` floats apart.
void FillPanels(const Matrix32& x, int64_t rows, int64_t columns,
                int64_t stride, float* to);
// Rows of bf16 of which two make one of pairs; no second ones are zeros.
struct PairRows {
  const uint16_t* first = nullptr;
  const uint16_t* second = nullptr;
  int64_t stride = 0;
};
void FillPanels(const PairRows& x, int64_t rows, int64_t columns,
                int64_t stride, float* to);
// out [rows, panels * 16] = left [rows, depth] * right, or out + that. Sums go
// over the depth in order, one after the other.
void Multiply(int64_t rows, int64_t panels, int64_t depth, const Matrix32& left,
              const Panels& right, bool add, float* out, int64_t out_stride);

// A line of a left factor's depth in blocks of `columns` each, for AMX (amx.h):
// the last one ends where the line does, so that it may begin in the one
// before; columns that both have are zeros in the last one.
struct DepthBlocks {
  explicit DepthBlocks(int64_t depth)
      : depth(depth),
        count((depth + kPanel - 1) / kPanel),
        columns(count > 0 ? (depth + count - 1) / count : 0) {}

  int64_t First(int64_t block) const {
    return std::min(block * columns, depth - columns);
  }

  int64_t depth, count, columns;
};
inline constexpr int64_t kBlockRows = 16;
// Rows of a block lie kPanel floats apart.
inline constexpr int64_t kBlockFloats = kBlockRows * kPanel;

// Panels that are worth multiplying together on this machine: those of a call
// share what is loaded of the left factor.
int64_t PanelsAtOnce();

// A part of the depth: where it begins in both factors.
struct DepthPart {
  int64_t left = 0, right = 0;
};

// The same, where the depth is parts of one length. With `pairs`, what stands
// in place of each float of both factors is two neighbours in depth, of bf16,
// the first one in the low bits; only where HasPairs().
struct PartsProduct {
  int64_t rows = 0, panels = 1;
  absl::Span<const DepthPart> parts;  // none: zeros
  int64_t depth = 0;                  // of each
  Matrix32 left;
  // The same for each of some lines, from one to the next; unless `left` is
  // tiles, or with pairs where HasAmx().
  struct Lines {
    int64_t count = 1, left = 0, out = 0;
  } lines;
  int64_t tile_stride = 0;  // > 0: `left` is tiles that far apart
  // Those tiles are of kBlockRows rows, and of each part they have its
  // DepthBlocks, kBlockFloats each; only with pairs, where HasAmx().
  bool blocks = false;
  Panels right;
  bool pairs = false;
  // What comes near meanwhile, as long as whole tiles are multiplied; null:
  // nothing.
  ReadAhead* ahead = nullptr;
  // A row of all panels, with which each row's sums begin; null: with zeros, or
  // what they are added to.
  const float* bias = nullptr;
  // With AVX-512, the result goes around the caches (FinishStores,
  // streamed_output.h): its rows begin with a cache line, and are pairs of
  // panels.
  bool streams = false;
};
void Multiply(const PartsProduct& product, bool add, float* out,
              int64_t out_stride);
// The same, rounded to half or bfloat16, of a left factor that is no tiles;
// only where this machine can, and pairs to bfloat16 alone.
bool RoundsProducts(bool pairs);
template <typename Out>
void MultiplyRounded(const PartsProduct& product, Out* out, int64_t out_stride);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_SMALL_PRODUCT_H_
