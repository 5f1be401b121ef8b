// Windows of pooling and what both layouts look like to its loops.
#ifndef HALFTONE_KERNELS_COMMON_POOL_SHAPE_H_
#define HALFTONE_KERNELS_COMMON_POOL_SHAPE_H_

#include <cstdint>
#include <vector>

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
  int64_t in = 1, out = 1;
  int64_t kernel = 1, stride = 1, before = 0, after = 0;
  // Window o of n goes from floor(o * in / n) to ceil((o + 1) * in / n).
  bool adaptive = false;

  // Positions of window o that lie inside the image; its size may be negative
  // where it lies outside.
  HT_HOST_DEVICE Range Window(int64_t o) const {
    if (adaptive) return {o * in / out, ((o + 1) * in + out - 1) / out};
    const int64_t begin = o * stride - before;
    const int64_t end = begin + kernel;
    return {begin > 0 ? begin : 0, end < in ? end : in};
  }
  // How much of window o lies inside the image and its padding.
  HT_HOST_DEVICE int64_t PaddedSize(int64_t o) const {
    const int64_t left = in + before + after - o * stride;
    return left < kernel ? left : kernel;
  }
  // Windows o whose element j lies inside; it is at o * stride - before + j.
  // Not of adaptive ones.
  HT_HOST_DEVICE Range WindowsWith(int64_t j) const {
    const int64_t shift = before - j;  // o * stride in [shift, shift + in)
    const int64_t begin = shift <= 0 ? 0 : (shift + stride - 1) / stride;
    const int64_t last = shift + in - 1;
    const int64_t most = last < 0 ? 0 : last / stride + 1;
    const int64_t end = most < out ? most : out;
    return {begin < end ? begin : end, end};
  }
  // Window by window: adaptive ones cost divisions.
  std::vector<Range> Windows() const {
    std::vector<Range> windows;
    for (int64_t o = 0; o < out; ++o) windows.push_back(Window(o));
    return windows;
  }
  // Windows that hold position i.
  HT_HOST_DEVICE Range WindowsOver(int64_t i) const {
    if (adaptive) return {i * out / in, ((i + 1) * out + in - 1) / in};
    const int64_t at = i + before;  // o * stride in (at - kernel, at]
    const int64_t begin = at < kernel ? 0 : (at - kernel) / stride + 1;
    const int64_t most = at / stride + 1;
    const int64_t end = most < out ? most : out;
    return {begin < end ? begin : end, end};
  }
};

// Images are planes [d.in][h.in][w.in][channels]: row_major has a plane per
// sample and channel, with one channel; channels_last a plane per sample.
struct PoolShape {
  PoolDim d, h, w;  // a missing one is of a single position
  int64_t planes = 0, channels = 1;
  bool max = true, exclusive = true;
  // Windows may hold nothing; of_nothing is their maximum or sum.
  bool all_windows = false;
  float of_nothing = 0;

  // Of any op of kPools, kPoolGrads and kMaxPoolGrads.
  static PoolShape Of(const BoundOp& op);

  HT_HOST_DEVICE int64_t InRow() const { return w.in * channels; }
  HT_HOST_DEVICE int64_t OutRow() const { return w.out * channels; }
  // What the mean of a window is divided by; 1 if it holds nothing, unless
  // such windows are asked for.
  HT_HOST_DEVICE float Divisor(int64_t od, int64_t oh, int64_t ow) const {
    const int64_t n =
        exclusive
            ? d.Window(od).size() * h.Window(oh).size() * w.Window(ow).size()
            : d.PaddedSize(od) * h.PaddedSize(oh) * w.PaddedSize(ow);
    return n > 0 || all_windows ? static_cast<float>(n) : 1.0f;
  }
};

// A line of windows over a row of an image, and the place in its windows of the
// row's elements in their first column.
struct LineOver {
  int64_t line, place;
};
// Those over each row, in order.
std::vector<std::vector<LineOver>> LinesOver(const PoolShape& shape);

// The ops of the family, and their gradients.
inline constexpr const char* kPools[] = {"pool1d", "pool2d", "pool3d",
                                         "max_pool2d_with_index",
                                         "max_pool3d_with_index"};
inline constexpr const char* kPoolGrads[] = {"pool1d_grad", "pool2d_grad",
                                             "pool3d_grad"};
// Of maxima whose places are known.
inline constexpr const char* kMaxPoolGrads[] = {
    "max_pool1d_grad", "max_pool2d_grad", "max_pool3d_grad"};

// ops::kNoArgmax, for device code.
inline constexpr uint8_t kNoArgmax = 255;
// Whether an op of kPools is to say where its maxima lie, too.
bool HasArgmax(const BoundOp& op);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_POOL_SHAPE_H_
