// What pool2d and its gradient share.
#ifndef HALFTONE_KERNELS_CUDA_POOL_H_
#define HALFTONE_KERNELS_CUDA_POOL_H_

#include <cstdint>

#include "kernels/common/pool_shape.h"
#include "kernels/cuda/map.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// From a flat index of [planes][rows][columns][channels] to its parts.
struct PoolIndex {
  Divider channels, columns, rows;

  PoolIndex() = default;
  PoolIndex(int64_t row_count, int64_t column_count, int64_t channel_count)
      : channels(channel_count > 0 ? channel_count : 1),
        columns(column_count > 0 ? column_count : 1),
        rows(row_count > 0 ? row_count : 1) {}

  struct Place {
    int64_t plane, row, column, channel;
  };
  HT_DEVICE Place Of(int64_t i) const {
    const int64_t pixel = channels.Divide(i);
    const int64_t line = columns.Divide(pixel);
    const int64_t plane = rows.Divide(line);
    return {plane, line - plane * rows.divisor(),
            pixel - line * columns.divisor(), i - pixel * channels.divisor()};
  }
};

// Vectors of channels.
inline int PoolVector(const PoolShape& shape, DType dtype, bool aligned) {
  if (!aligned) return 1;
  const int vector = VectorOf({dtype});
  if (vector == 8 && shape.channels % 8 == 0) return 8;
  return shape.channels % 4 == 0 ? 4 : 1;
}

void RegisterCudaPoolGrad(KernelRegistry& registry);  // pool_grad.cu

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_POOL_H_
