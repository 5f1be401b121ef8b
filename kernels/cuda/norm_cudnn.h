// Batch norm within the convolutions before and after it, as graphs of cuDNN:
// a norm's output need not be in memory at all. cuDNN 9.19 has engines for
// that in f16 and channels_last alone (norm_cudnn_test.cc), none in bf16, and
// its prologue takes scale and bias rounded to f16. norm_fusions_cudnn.h makes
// kernels of them.
#ifndef HALFTONE_KERNELS_CUDA_NORM_CUDNN_H_
#define HALFTONE_KERNELS_CUDA_NORM_CUDNN_H_

#include "kernels/common/conv_shape.h"
#include "kernels/cuda/conv_cudnn.h"

namespace halftone {
namespace kernels {
namespace cuda {

// scale_bias + relu, conv2d, channel_stats:
//   a = relu(image * scale + bias)   [N, C, H, W], never in memory
//   result = conv(a, filter)         [N, O, OH, OW]
//   sum, sum of squares of result    f32 [O]
// Inputs: image, scale, bias, filter; outputs: result, sum, squares. Without
// `prologue` a is the image, and there is no scale and bias.
BoundGraph NormConvGraph(const ConvOp& conv, bool prologue);

// scale_bias + relu, gradient of the filter: of conv(a, filter) with a as
// above. Inputs: image, scale, bias, result's gradient; output: filter's.
BoundGraph NormConvGradFilterGraph(const ConvOp& conv);

// Gradient of the image, relu's gradient and bn_grad_reduce, for
// conv(relu(norm(x))): with n = (x - mean) * inv_std * scale + bias
//   g = n > 0 ? image's gradient : 0     [N, C, H, W], in memory
//   sum of g * (x - mean) * inv_std, sum of g    f32 [C]
// Inputs: result's gradient, filter, x; mean, inv_std, scale, bias in f32.
// Outputs: g, both sums, and the coefficients (of g, of x, constant) with
// which x's gradient is a sum of these two, for one rank's batch.
BoundGraph ConvGradNormGraph(const ConvOp& conv);

// The same of conv(relu(norm(x) + y)):
//   g = n + y > 0 ? image's gradient + gradient : 0
// where the added gradient may be missing, and y may be a norm, of a second x,
// with sums of its own. Inputs: result's gradient, filter; the added gradient;
// x, mean, inv_std, scale, bias; y, or what these are of the second norm.
// Outputs: g, sums and coefficients of each norm.
struct AddedToNorm {
  bool gradient = false, norm = false;
};
BoundGraph ConvGradAddNormGraph(const ConvOp& conv, const AddedToNorm& added);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_NORM_CUDNN_H_
