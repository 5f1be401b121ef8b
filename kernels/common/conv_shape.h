// What conv2d and its gradients look like to kernels: one geometry, three
// tensors of which one is computed.
#ifndef HALFTONE_KERNELS_COMMON_CONV_SHAPE_H_
#define HALFTONE_KERNELS_COMMON_CONV_SHAPE_H_

#include <cstdint>

#include "graph/base/half.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// The windows along height or width.
struct ConvDim {
  int64_t image = 0, filter = 1, result = 0;  // sizes
  int64_t stride = 1, dilation = 1, before = 0, after = 0;

  // Where in the image tap `f` of window `r` lies; outside: padding.
  HT_HOST_DEVICE int64_t At(int64_t r, int64_t f) const {
    return r * stride - before + f * dilation;
  }
  // The window whose tap `f` lies on position `i` of the image; -1: none.
  HT_HOST_DEVICE int64_t WindowAt(int64_t i, int64_t f) const {
    const int64_t shifted = i + before - f * dilation;
    if (shifted < 0 || shifted % stride != 0) return -1;
    return shifted / stride < result ? shifted / stride : -1;
  }
};

struct ConvShape {
  int64_t samples = 0, groups = 1;
  // Image channels and filters of one group.
  int64_t channels = 0, filters = 0;
  ConvDim h, w;
};

enum class ConvResult { kResult, kImage, kFilter };

// A bound conv2d, depthwise_conv2d, conv2d_grad_input or conv2d_grad_filter.
struct ConvOp {
  ConvResult computed = ConvResult::kResult;
  // Flat positions in the op's inputs, for the computed one in its outputs;
  // -1: no bias.
  int image = 0, filter = 0, result = 0, bias = -1;
  TensorDesc image_desc, filter_desc, result_desc;
  ConvShape shape;

  static ConvOp Of(const BoundOp& op);
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_CONV_SHAPE_H_
