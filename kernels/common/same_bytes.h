// Whether moving elements moves any bytes.
#ifndef HALFTONE_KERNELS_COMMON_SAME_BYTES_H_
#define HALFTONE_KERNELS_COMMON_SAME_BYTES_H_

#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// Whether an op that looks at its input in another way (OpSchema::view: a
// reshape, or a conversion between layouts) leaves its bytes as they are:
// always where it changes neither layout nor the order of dims; images of one
// channel or one pixel lie the same in both, and a channels-last one lies as
// the row-major one that move_channels makes of it.
bool KeepsBytes(const BoundOp& view);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_SAME_BYTES_H_
