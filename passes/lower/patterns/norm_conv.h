// What the patterns of convolutions with batch norm around them share.
#ifndef HALFTONE_PASSES_LOWER_PATTERNS_NORM_CONV_H_
#define HALFTONE_PASSES_LOWER_PATTERNS_NORM_CONV_H_

#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {

// Whether libraries fuse a convolution of such images with the norms around
// it: f16 in channels_last alone (kernels/cuda/norm_cudnn_test.cc). For
// other types the kernels' word would be the same, and norms are left whole.
bool IsFusedConvImage(const TensorType& type);

// Whether the op is a conv2d, or a gradient of one, of such images, without
// groups and bias. `type`: "conv2d", "conv2d_grad_input" ...
bool IsFusedConv(const Block& block, OpId op, absl::string_view type);

// relu(scale_bias(X)) that nothing but `reader` reads.
struct NormRelu {
  OpId norm, relu;
  bool valid() const { return norm.valid(); }
};
NormRelu NormReluFor(const Block& block, OpId reader, ValueId value,
                     const HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_PATTERNS_NORM_CONV_H_
