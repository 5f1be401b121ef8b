// Whether moving elements moves any bytes.
#ifndef HALFTONE_KERNELS_COMMON_SAME_BYTES_H_
#define HALFTONE_KERNELS_COMMON_SAME_BYTES_H_

#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// Whether an op that keeps its input's elements in their order (a reshape, or a
// conversion between layouts) leaves their bytes as they are: always where it
// changes no layout; images of one channel or one pixel lie the same in both.
bool HaveSameBytes(const TensorDesc& in, const TensorDesc& out);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_SAME_BYTES_H_
