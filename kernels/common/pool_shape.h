// Windows of pool2d and what both layouts look like to its loops.
#ifndef HALFTONE_KERNELS_COMMON_POOL_SHAPE_H_
#define HALFTONE_KERNELS_COMMON_POOL_SHAPE_H_

#include <cstdint>

#include "graph/base/half.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// The half-open range of positions.
struct Range {
  int64_t begin, end;
  HT_HOST_DEVICE int64_t size() const { return end - begin; }
};

// The windows along one dim.
struct PoolDim {
  int64_t in = 0, out = 0;
  int64_t kernel = 1, stride = 1, before = 0;

  // Positions of window o that lie inside the image.
  HT_HOST_DEVICE Range Window(int64_t o) const {
    const int64_t begin = o * stride - before;
    const int64_t end = begin + kernel;
    return {begin > 0 ? begin : 0, end < in ? end : in};
  }
  // Windows o whose element j lies inside; it is at o * stride - before + j.
  HT_HOST_DEVICE Range WindowsWith(int64_t j) const {
    const int64_t shift = before - j;  // o * stride in [shift, shift + in)
    const int64_t begin = shift <= 0 ? 0 : (shift + stride - 1) / stride;
    const int64_t last = shift + in - 1;
    const int64_t most = last < 0 ? 0 : last / stride + 1;
    const int64_t end = most < out ? most : out;
    return {begin < end ? begin : end, end};
  }
  // Windows that hold position i.
  HT_HOST_DEVICE Range WindowsOver(int64_t i) const {
    const int64_t at = i + before;  // o * stride in (at - kernel, at]
    const int64_t begin = at < kernel ? 0 : (at - kernel) / stride + 1;
    const int64_t most = at / stride + 1;
    const int64_t end = most < out ? most : out;
    return {begin < end ? begin : end, end};
  }
};

// Images are planes [h.in][w.in][channels]: row_major has a plane per sample
// and channel, with one channel; channels_last a plane per sample.
struct PoolShape {
  PoolDim h, w;
  int64_t planes = 0, channels = 1;
  bool max = true, exclusive = true;

  // Of a pool2d or pool2d_grad.
  static PoolShape Of(const BoundOp& op);

  HT_HOST_DEVICE int64_t InRow() const { return w.in * channels; }
  HT_HOST_DEVICE int64_t OutRow() const { return w.out * channels; }
  // What the mean of a window is divided by; 1 if it holds nothing.
  HT_HOST_DEVICE float Divisor(int64_t oh, int64_t ow) const {
    if (!exclusive) return static_cast<float>(h.kernel * w.kernel);
    const int64_t n = h.Window(oh).size() * w.Window(ow).size();
    return n > 0 ? static_cast<float>(n) : 1.0f;
  }
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_POOL_SHAPE_H_
