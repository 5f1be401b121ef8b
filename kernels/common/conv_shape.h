// What convolutions, transposed ones and their gradients look like to kernels:
// one geometry of three spatial dims, the first of which may be missing, and
// three tensors of which one is computed.
#ifndef HALFTONE_KERNELS_COMMON_CONV_SHAPE_H_
#define HALFTONE_KERNELS_COMMON_CONV_SHAPE_H_

#include <cstdint>

#include "graph/base/half.h"
#include "kernels/bound_op.h"
#include "kernels/common/strides.h"

namespace halftone {
namespace kernels {

// The windows along depth, height or width; a missing dim is one of 1.
struct ConvDim {
  int64_t image = 1, filter = 1, result = 1;  // sizes
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
  int spatial = 2;
  ConvDim volume[3];  // depth, height, width

  // Those that are there.
  ConvDim* dims() { return volume + 3 - spatial; }
  const ConvDim* dims() const { return volume + 3 - spatial; }
};

enum class ConvResult { kResult, kImage, kFilter };

// A bound convolution: forward, of the gradient of either input, or transposed,
// whose Input is the result and whose Output the image.
struct ConvOp {
  ConvResult computed = ConvResult::kResult;
  // Flat positions in the op's inputs, for the computed one in its outputs;
  // -1: no bias.
  int image = 0, filter = 0, result = 0, bias = -1;
  TensorDesc image_desc, filter_desc, result_desc;
  ConvShape shape;

  static ConvOp Of(const BoundOp& op);
};

// Strides of a tensor of 3 to 5 dims as one of 5; 0 where it has no such dim.
struct VolumeStrides {
  int64_t of[5] = {};
};
VolumeStrides VolumeStridesOf(const TensorDesc& desc);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_CONV_SHAPE_H_
