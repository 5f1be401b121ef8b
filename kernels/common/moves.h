// Ops that read one tensor axis by axis: slices, flips, padding, repetition.
#ifndef HALFTONE_KERNELS_COMMON_MOVES_H_
#define HALFTONE_KERNELS_COMMON_MOVES_H_

#include <cstdint>
#include <vector>

#include "graph/base/half.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// What stands beyond the positions of an axis.
enum class Beyond : uint8_t { kFill, kReflect, kReplicate, kWrap };

// Where index i of an output's axis comes from, on an axis of the input.
struct AxisRead {
  int64_t extent = 1;  // of the output
  // Positions 0 to size - 1 stand `spread` apart from `before` on; what lies
  // between them is filled.
  int64_t size = 1, before = 0, spread = 1;
  Beyond beyond = Beyond::kFill;
  // Position p is the input's element start + p * step, whose neighbours are
  // `stride` elements apart.
  int64_t start = 0, step = 1, stride = 1;

  // The element along the input's axis; -1: filled.
  HT_HOST_DEVICE int64_t At(int64_t i) const {
    int64_t p = i - before;
    if (spread != 1) {
      if (p < 0 || p % spread != 0) return -1;
      p /= spread;
    }
    if (p < 0 || p >= size) {
      if (beyond == Beyond::kFill) return -1;
      if (beyond == Beyond::kReflect) p = p < 0 ? -p : 2 * (size - 1) - p;
      if (beyond == Beyond::kReplicate) p = p < 0 ? 0 : size - 1;
      if (beyond == Beyond::kWrap) p = p < 0 ? p + size : p % size;
    }
    return start + p * step;
  }
};

// Out from an input of one dtype.
struct Move {
  std::vector<AxisRead> axes;  // of Out, outermost first, at least one
  int size = 0;                // of an element, in bytes
  uint64_t fill = 0;           // the bits of what is filled

  int64_t elements() const;
};

// Of slice, strided_slice, pad_like, flip, pad, pad3d, expand_v2 and tile; axes
// that are read as they are go together.
Move MoveOf(const BoundOp& op);

// How pad3d reads X, axis by axis, for its gradient: [N, C, D, H, W].
std::vector<AxisRead> PaddedAxes(const BoundOp& op, const TensorDesc& x,
                                 const TensorDesc& out);

// The ops of which MoveOf knows.
inline constexpr const char* kMoves[] = {
    "slice", "strided_slice", "pad_like",  "flip",
    "pad",   "pad3d",         "expand_v2", "tile"};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_MOVES_H_
