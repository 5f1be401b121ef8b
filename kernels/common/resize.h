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

// The elements first, first + 1 ... up to the last of `in`, by their weights.
struct ResizeTaps {
  static constexpr int kMost = 4;
  int64_t first = 0;
  int count = 1;
  float weights[kMost] = {1, 0, 0, 0};
};

// From `in` elements to `out` along one dim.
struct ResizeDim {
  int64_t in = 1, out = 1;
  float ratio = 0;  // elements of `in` for each of `out`
  bool nearest = false, cubic = false, align_corners = false, centered = false;

  // What element `o` is made of.
  HT_HOST_DEVICE ResizeTaps Of(int64_t o) const {
    ResizeTaps taps;
    float at = ratio * static_cast<float>(o);
    if (nearest) {
      taps.first = static_cast<int64_t>(align_corners ? at + 0.5f : at);
      if (taps.first >= in) taps.first = in - 1;
      return taps;
    }
    if (centered) at = ratio * (static_cast<float>(o) + 0.5f) - 0.5f;
    if (cubic) return Cubic(at);
    if (at < 0) at = 0;
    taps.first = static_cast<int64_t>(at);
    if (taps.first >= in - 1) {
      taps.first = in - 1;
      return taps;
    }
    const float next = at - static_cast<float>(taps.first);
    taps.weights[0] = 1 - next;
    taps.weights[1] = next;
    if (next != 0) taps.count = 2;
    return taps;
  }

  // What element `o` has of element `i`.
  HT_HOST_DEVICE float Share(int64_t o, int64_t i) const {
    const ResizeTaps taps = Of(o);
    float share = 0;
    for (int k = 0; k < ResizeTaps::kMost; ++k) {
      if (taps.first + k == i) share = taps.weights[k];
    }
    return share;
  }

  // No element before this one has anything of element `i`, nor has any from
  // the other on.
  HT_HOST_DEVICE int64_t Begin(int64_t i) const {
    return FirstFrom(i - (cubic ? 3 : 1));
  }
  HT_HOST_DEVICE int64_t End(int64_t i) const { return FirstFrom(i + 1); }

 private:
  // Two elements on either side, those at the edges again for what lies beyond:
  // Keys' kernel with a = -3/4, as Paddle and PyTorch have it.
  HT_HOST_DEVICE ResizeTaps Cubic(float at) const {
    const float below = floorf(at), t = at - below;
    const auto base = static_cast<int64_t>(below);
    const float weights[] = {Far(t + 1), Near(t), Near(1 - t), Far(2 - t)};
    ResizeTaps taps;
    taps.first = Inside(base - 1);
    taps.count = static_cast<int>(Inside(base + 2) - taps.first) + 1;
    taps.weights[0] = 0;
    for (int k = 0; k < ResizeTaps::kMost; ++k) {
      const int64_t place = Inside(base - 1 + k) - taps.first;
      for (int j = 0; j < ResizeTaps::kMost; ++j) {
        if (j == place) taps.weights[j] += weights[k];
      }
    }
    return taps;
  }
  HT_HOST_DEVICE int64_t Inside(int64_t i) const {
    return i < 0 ? 0 : i >= in ? in - 1 : i;
  }
  // Of an element at a distance up to 1, and from 1 to 2.
  HT_HOST_DEVICE static float Near(float x) {
    return (1.25f * x - 2.25f) * x * x + 1;
  }
  HT_HOST_DEVICE static float Far(float x) {
    return ((-0.75f * x + 3.75f) * x - 6) * x + 3;
  }

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
    "nearest_interp_v2", "bicubic_interp_v2"};
inline constexpr const char* kResizeGrads[] = {
    "linear_interp_v2_grad", "bilinear_interp_v2_grad",
    "trilinear_interp_v2_grad", "nearest_interp_v2_grad",
    "bicubic_interp_v2_grad"};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_RESIZE_H_
