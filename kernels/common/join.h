// Joins and cuts along one axis: concat, concat_grad, split, stack, unstack.
#ifndef HALFTONE_KERNELS_COMMON_JOIN_H_
#define HALFTONE_KERNELS_COMMON_JOIN_H_

#include <cstdint>
#include <vector>

#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// `outer` rows of the whole, of `row` bytes, in which the rows of the parts lie
// side by side.
struct Join {
  int64_t outer = 0, row = 0;
  std::vector<int64_t> parts;  // bytes
};
// The whole is the first input, and the outputs are its parts (`cuts`), or the
// first output, of the inputs.
Join JoinOf(const BoundOp& op, bool cuts);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_JOIN_H_
