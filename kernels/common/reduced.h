// What the attributes of reductions that are no sums mean to kernels.
#ifndef HALFTONE_KERNELS_COMMON_REDUCED_H_
#define HALFTONE_KERNELS_COMMON_REDUCED_H_

#include <cstdint>
#include <vector>

#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// The axes that a p_norm reduces.
std::vector<bool> NormAxes(const BoundOp& op);

// X along the `axis` of arg_max, arg_min or cumsum, or all of it as one axis
// with `flatten`: `outer` times `length` times `inner`, row-major.
struct AlongAxis {
  int64_t outer = 1, length = 1, inner = 1;
};
AlongAxis AlongAxisOf(const BoundOp& op);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_REDUCED_H_
