// Which draw belongs to which element of what is dropped.
#ifndef HALFTONE_KERNELS_COMMON_DROPOUT_SHAPE_H_
#define HALFTONE_KERNELS_COMMON_DROPOUT_SHAPE_H_

#include <cstdint>

#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// Samples one after the other; as a sample's elements lie in memory, each draw
// serves `run` of them, and the draws begin anew after `draws`. The numbers are
// 1 or more, of empty tensors too.
struct DropoutShape {
  int64_t sample, draws, run;

  // Of a dropout, dropout_nd, or a gradient of theirs.
  static DropoutShape Of(const BoundOp& op);
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_DROPOUT_SHAPE_H_
