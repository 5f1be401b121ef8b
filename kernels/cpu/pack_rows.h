// Rows of channels-last images as factors of products (small_product.h), in one
// pass from where they lie.
#ifndef HALFTONE_KERNELS_CPU_PACK_ROWS_H_
#define HALFTONE_KERNELS_CPU_PACK_ROWS_H_

#include <cstdint>

#include "graph/base/dtype.h"
#include "kernels/cpu/norm.h"

namespace halftone {
namespace kernels {

// Rows, `stride` elements apart, of f32, f16 or bf16.
struct PixelRows {
  DType dtype = DType::kF32;
  const void* data = nullptr;
  int64_t stride = 0;
  // Of which relu(norm(x)) is wanted, each step rounded to `dtype` as if it had
  // been stored; that of the first column.
  const NormalizeMap* norm = nullptr;
  // bf16 alone: an element is packed as a pair, the second of which comes from
  // there; zeros from nowhere.
  bool pairs = false;
  const void* second = nullptr;
};

// As panels of columns, `stride` floats apart; the last one is filled up with
// zeros.
void PackPanels(const PixelRows& x, int64_t rows, int64_t columns,
                int64_t stride, float* to);

// Transposed, as tiles of columns, `stride` floats apart, without a norm. A
// vector is stored for each row: what is behind a tile's end may be spoiled, up
// to kPanel floats.
void PackTiles(const PixelRows& x, int64_t rows, int64_t columns,
               int64_t stride, float* to);

// Pairs, transposed, as tiles of blocks (DepthBlocks of a line of `depth`):
// rows `first` on of a line. All rows of a line must be packed, none has a
// norm.
void PackBlocks(const PixelRows& x, int64_t rows, int64_t columns,
                int64_t first, int64_t depth, int64_t stride, float* to);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_PACK_ROWS_H_
