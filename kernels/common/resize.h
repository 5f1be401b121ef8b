// Interpolation along one dim, and of images as planes. Positions are computed
// in f32, as Paddle and PyTorch do.
#ifndef HALFTONE_KERNELS_COMMON_RESIZE_H_
#define HALFTONE_KERNELS_COMMON_RESIZE_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "graph/base/half.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// Element `first` and the one after it, where that has a weight.
struct ResizePair {
  int64_t first = 0;
  float weight = 1, next = 0;
};

// From `in` elements to `out` along one dim.
struct ResizeDim {
  int64_t in = 1, out = 1;
  float ratio = 0;  // elements of `in` for each of `out`
  bool nearest = false, align_corners = false, centered = false;

  // What element `o` is made of.
  HT_HOST_DEVICE ResizePair Of(int64_t o) const {
    ResizePair pair;
    float at = ratio * static_cast<float>(o);
    if (nearest) {
      pair.first = static_cast<int64_t>(align_corners ? at + 0.5f : at);
      if (pair.first >= in) pair.first = in - 1;
      return pair;
    }
    if (centered) {
      at = ratio * (static_cast<float>(o) + 0.5f) - 0.5f;
      if (at < 0) at = 0;
    }
    pair.first = static_cast<int64_t>(at);
    if (pair.first >= in - 1) {
      pair.first = in - 1;
      return pair;
    }
    pair.next = at - static_cast<float>(pair.first);
    pair.weight = 1 - pair.next;
    return pair;
  }

  // What element `o` has of element `i`.
  HT_HOST_DEVICE float Share(int64_t o, int64_t i) const {
    const ResizePair pair = Of(o);
    if (pair.first == i) return pair.weight;
    return pair.first + 1 == i ? pair.next : 0;
  }

  // No element before this one has anything of element `i`, nor has any from
  // the other on.
  HT_HOST_DEVICE int64_t Begin(int64_t i) const { return FirstFrom(i - 1); }
  HT_HOST_DEVICE int64_t End(int64_t i) const { return FirstFrom(i + 1); }

 private:
  // The first element made of element `i` or later ones: they rise.
  HT_HOST_DEVICE int64_t FirstFrom(int64_t i) const {
    int64_t low = 0, high = out;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (Of(middle).first < i) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

// Images are planes [d][h][w][channels]: row_major has a plane per sample and
// channel, with one channel; channels_last a plane per sample.
struct ResizeShape {
  ResizeDim dims[3];  // depth, height, width; a missing one is of one element
  int64_t planes = 0, channels = 1;

  // Of an interpolation or the gradient of one.
  static ResizeShape Of(const BoundOp& op);
};

// The ops, and their gradients.
inline constexpr const char* kResizes[] = {
    "linear_interp_v2", "bilinear_interp_v2", "trilinear_interp_v2",
    "nearest_interp_v2"};
inline constexpr const char* kResizeGrads[] = {
    "linear_interp_v2_grad", "bilinear_interp_v2_grad",
    "trilinear_interp_v2_grad", "nearest_interp_v2_grad"};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_RESIZE_H_
