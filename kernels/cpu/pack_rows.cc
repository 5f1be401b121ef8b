#include "kernels/cpu/pack_rows.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/pixel_source.h"
#include "kernels/cpu/small_product.h"

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
  ForPixelSource(x, [=](const auto& source) {
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

}  // namespace kernels
}  // namespace halftone
