// What an image is sampled from, and how that moves with the grid. Formulas:
// PyTorch's grid_sample, whose coordinates are computed in f32.
#ifndef HALFTONE_KERNELS_COMMON_GRID_SAMPLER_H_
#define HALFTONE_KERNELS_COMMON_GRID_SAMPLER_H_

#include <cmath>
#include <cstdint>

#include "graph/base/half.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

enum class GridPadding : uint8_t { kZeros, kBorder, kReflection };

// A place along a dim: between `first` and the element after it, `next` of the
// way there. Elements outside the image count as 0.
struct GridPlace {
  int64_t first = 0;
  float next = 0;
  float slope = 0;  // elements that it moves for each 1 of the grid
};

struct GridDim {
  int64_t size = 1;
  bool align_corners = true, nearest = false;
  GridPadding padding = GridPadding::kZeros;

  HT_HOST_DEVICE GridPlace At(float grid) const {
    const float n = static_cast<float>(size);
    GridPlace place;
    place.slope = align_corners ? (n - 1) / 2 : n / 2;
    float at =
        align_corners ? (grid + 1) / 2 * (n - 1) : ((grid + 1) * n - 1) / 2;
    if (padding == GridPadding::kReflection) at = Reflected(at, &place.slope);
    if (padding != GridPadding::kZeros) at = Clamped(at, &place.slope);
    if (nearest) {
      at = nearbyintf(at);
      place.slope = 0;
    }
    // What is no number is found in Output.
    if (!(at == at)) {
      place.next = at;
      return place;
    }
    // Further away there is nothing, either.
    at = at < -2 ? -2 : at > n + 1 ? n + 1 : at;
    const float below = floorf(at);
    place.first = static_cast<int64_t>(below);
    place.next = at - below;
    return place;
  }
  HT_HOST_DEVICE bool Has(int64_t i) const { return i >= 0 && i < size; }

 private:
  HT_HOST_DEVICE float Clamped(float at, float* slope) const {
    const float last = static_cast<float>(size - 1);
    if (at <= 0 || at >= last) *slope = 0;
    return at < 0 ? 0 : at > last ? last : at;
  }
  // Off the middles of the outer elements, or the edges.
  HT_HOST_DEVICE float Reflected(float at, float* slope) const {
    const float low = align_corners ? 0 : -0.5f;
    const float span = static_cast<float>(align_corners ? size - 1 : size);
    if (span == 0) {
      *slope = 0;
      return 0;
    }
    float beyond = at - low;
    if (beyond < 0) {
      beyond = -beyond;
      *slope = -*slope;
    }
    const float rest = fmodf(beyond, span);
    const bool even = fmodf(floorf(beyond / span), 2.0f) == 0;
    if (even) return rest + low;
    *slope = -*slope;
    return span - rest + low;
  }
};

// X [images, channels, h.size, w.size], sampled at rows * columns places.
struct GridShape {
  GridDim h, w;
  int64_t images = 0, channels = 0, rows = 0, columns = 0;

  HT_HOST_DEVICE int64_t pixels() const { return h.size * w.size; }
  HT_HOST_DEVICE int64_t places() const { return rows * columns; }

  // Of grid_sampler or one of its gradients.
  static GridShape Of(const BoundOp& op);
};

// A place between four elements of a plane, of which the i-th is one further
// down if i & 2, one further right if i & 1.
struct GridCell {
  GridPlace h, w;

  // `grid`: x, y.
  HT_HOST_DEVICE GridCell(const GridShape& shape, float x, float y)
      : h(shape.h.At(y)), w(shape.w.At(x)) {}
  // Where it is in the plane; -1: outside.
  HT_HOST_DEVICE int64_t Element(const GridShape& shape, int i) const {
    const int64_t row = h.first + (i >> 1), column = w.first + (i & 1);
    if (!shape.h.Has(row) || !shape.w.Has(column)) return -1;
    return row * shape.w.size + column;
  }
  HT_HOST_DEVICE float Weight(int i) const {
    return (i & 2 ? h.next : 1 - h.next) * (i & 1 ? w.next : 1 - w.next);
  }
  // How the weight changes with x and with y.
  HT_HOST_DEVICE float WeightByX(int i) const {
    return (i & 2 ? h.next : 1 - h.next) * (i & 1 ? w.slope : -w.slope);
  }
  HT_HOST_DEVICE float WeightByY(int i) const {
    return (i & 2 ? h.slope : -h.slope) * (i & 1 ? w.next : 1 - w.next);
  }
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_GRID_SAMPLER_H_
