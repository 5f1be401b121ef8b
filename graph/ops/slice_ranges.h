// What the attributes of slices mean: for inference and for kernels, so that
// the rules are written once.
#ifndef HALFTONE_GRAPH_OPS_SLICE_RANGES_H_
#define HALFTONE_GRAPH_OPS_SLICE_RANGES_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace halftone {
namespace ops {

// Elements start, start + stride, ...: `count` of them, all within the axis.
struct SliceRange {
  int64_t start = 0, count = 0, stride = 1;
};

// Of an axis of `size`. Negative bounds count from the end, those beyond it are
// the end. With a negative stride `end` = -1 is before the first, as Paddle's.
SliceRange RangeOf(int64_t start, int64_t end, int64_t stride, int64_t size);

// The bounds of a slice, one for each axis that it cuts.
struct SliceBounds {
  std::vector<int64_t> axes, starts, ends, strides;

  // Lists that are left out say: the first axes, from the first element, to the
  // last, each.
  void Complete();
};

// Bounds from here up (or as far below 0) take a symbolic axis whole.
inline constexpr int64_t kToTheEnd = std::numeric_limits<int32_t>::max();
// Whether they take all of an axis, whatever its size.
bool IsWhole(int64_t start, int64_t end, int64_t stride);

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_SLICE_RANGES_H_
