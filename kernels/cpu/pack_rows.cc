#include "kernels/cpu/pack_rows.h"

#include <algorithm>

#include "absl/base/attributes.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/pixel_source.h"
#include "kernels/cpu/small_product.h"
#include "kernels/cpu/transpose.h"

namespace halftone {
namespace kernels {

void PackPanels(const PixelRows& x, int64_t rows, int64_t columns,
                int64_t stride, float* to) {
  const int64_t row_stride = x.stride;
  ForPixelSource(x, [=](const auto& source) {
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      const int64_t whole = columns / kPanel * kPanel;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = r * row_stride;
        float* row = to + r * kPanel;
        int64_t c = 0;
        for (; c < whole; c += kPanel, row += stride) {
          for (int64_t i = 0; i < kPanel; i += Low::kSize) {
            float made[Low::kSize];
            source.template Load<Low>(at + c + i, c + i, made);
            Low::Store(made, row + i);
          }
        }
        if (c == columns) continue;
        for (int64_t i = 0; i < kPanel; ++i) {
          row[i] = 0.0f;
          if (c + i < columns) source.LoadOne(at + c + i, c + i, row + i);
        }
      }
    });
  });
}

void PackTiles(const PixelRows& x, int64_t rows, int64_t columns,
               int64_t stride, float* to) {
  const int64_t row_stride = x.stride, tile_rows = TileRows();
  ForPixelSource<PlainPixels>(x, [=](const auto& source) {
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = r * row_stride;
        const int64_t rest = (rows - r - 1) * row_stride + columns;
        float* tile = to + r * tile_rows;
        for (int64_t c = 0; c < columns; c += tile_rows, tile += stride) {
          // Not beyond the last row, whatever comes there.
          if (c + Low::kSize <= rest) {
            float made[Low::kSize];
            source.template Load<Low>(at + c, c, made);
            Low::Store(made, tile);
            continue;
          }
          for (int64_t i = 0; i < tile_rows && c + i < columns; ++i) {
            source.LoadOne(at + c + i, c + i, tile + i);
          }
        }
      }
    });
  });
}

namespace {

// Rows of kPanel pairs, some of those that `source` has from `at` on, of which
// it has `columns`.
template <typename Low, typename Source>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void GatherRows(
    const Source& source, int64_t at, int64_t column, int64_t row_stride,
    int64_t rows, int64_t columns, float* to) {
  for (int64_t r = 0; r < rows; ++r, at += row_stride, to += kPanel) {
    if (columns < kPanel) {
      for (int64_t i = 0; i < columns; ++i) {
        source.LoadOne(at + i, column + i, to + i);
      }
      continue;
    }
    for (int64_t i = 0; i < kPanel; i += Low::kSize) {
      source.template Load<Low>(at + i, column + i, to + i);
    }
  }
}

// Of a block, kPanel of them, `rows` rows become columns from `column` on.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TransposeIntoBlock(const float* from,
                                                            int64_t rows,
                                                            int64_t column,
                                                            float* block) {
  float made[kBlockFloats];
  float* const to = column == 0 ? block : made;
  TransposeSquare<kPanel>(from, kPanel, to, kPanel);
  if (column == 0) return;  // what is behind them comes later, or never counts
  for (int64_t i = 0; i < kBlockRows; ++i) {
    std::copy_n(made + i * kPanel, rows, block + i * kPanel + column);
  }
}

}  // namespace

void PackBlocks(const PixelRows& x, int64_t rows, int64_t columns,
                int64_t first, int64_t depth, int64_t stride, float* to) {
  const int64_t row_stride = x.stride;
  const DepthBlocks blocks(depth);
  ForPixelSource<PlainPairs>(x, [=](const auto& source) {
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      float gathered[kBlockFloats] = {};
      for (int64_t begin = 0; begin < rows;) {
        const int64_t at = first + begin;
        const int64_t b = std::min(at / blocks.columns, blocks.count - 1);
        const int64_t column = at - blocks.First(b);
        const int64_t n = std::min(rows - begin, blocks.columns - column);
        float* tile = to + b * kBlockFloats;
        for (int64_t c = 0; c < columns; c += kBlockRows, tile += stride) {
          // Columns that the block before has, too.
          if (at == b * blocks.columns) {
            for (int64_t i = 0; i < kBlockRows; ++i) {
              std::fill_n(tile + i * kPanel, column, 0.0f);
            }
          }
          GatherRows<Low>(source, begin * row_stride + c, c, row_stride, n,
                          std::min(kPanel, columns - c), gathered);
          TransposeIntoBlock(gathered, n, column, tile);
        }
        begin += n;
      }
    });
  });
}

}  // namespace kernels
}  // namespace halftone
