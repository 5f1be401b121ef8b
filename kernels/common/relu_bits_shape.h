// Where the bits of a relu lie (graph/ops/activation.cc: relu_bits).
#ifndef HALFTONE_KERNELS_COMMON_RELU_BITS_SHAPE_H_
#define HALFTONE_KERNELS_COMMON_RELU_BITS_SHAPE_H_

#include <cstdint>

#include "graph/base/half.h"
#include "graph/base/layout.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// What the bits of [N, C, ...] are of: of byte j eight elements, `inner` apart.
struct ReluBitsShape {
  int64_t bytes, inner = 1;

  explicit ReluBitsShape(const TensorDesc& image)
      : bytes(image.elements() / 8) {
    if (image.layout == Layout::kChannelsLast) return;
    for (int i = 2; i < image.rank(); ++i) inner *= image.dims[i];
  }
  // The first of them.
  HT_HOST_DEVICE int64_t ElementOf(int64_t j) const {
    return j / inner * 8 * inner + j % inner;
  }
};

// Of relu_bits and relu_grad_bits: the tensor of floats.
inline const TensorDesc& ReluImageOf(const BoundOp& op) {
  return op.type() == "relu_bits" ? op.Input("Out") : op.Input("OutGrad");
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_RELU_BITS_SHAPE_H_
